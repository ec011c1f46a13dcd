import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from pellucid.compare.work import flops_per_token
from pellucid.loss import summed_cross_entropy
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM

SIZES = {"vocab_size": 48, "context_length": 16, "d_model": 32, "num_layers": 2, "num_heads": 4}


def counted_by_torch(config, rows=2):
    """Operations for each token, forward and backward, of products as torch's own counter sees them."""
    model = TransformerLM(config).use_fused_attention(False)
    ids = torch.zeros(rows, config.context_length, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        summed_cross_entropy(model(ids), ids)[0].backward()
    return counter.get_total_flops() / ids.numel()


@pytest.mark.parametrize(
    "changes",
    [{}, {"tie_embeddings": True}, {"positions": "learned"}, {"feed_forward": "gelu"}, {"num_kv_heads": 2}],
    ids=str,
)
def test_the_formula_is_what_torch_counts_but_for_norms_and_what_attention_need_not_send_back(changes):
    config = ModelConfig(**SIZES | changes)
    model = TransformerLM(config)
    ours = flops_per_token(vars(config), model.num_parameters())
    norms = 6 * sum(p.numel() for p in model.parameters() if p.ndim == 1)
    assert ours - norms == pytest.approx(counted_by_torch(config), rel=0.01)


def test_a_window_and_local_layers_attend_to_fewer_keys():
    def keys(**changes):
        return (flops_per_token(vars(ModelConfig(**SIZES | changes)), 0) + 6 * 48 * 32) / (12 * 32)

    assert keys() == 2 * 16
    assert keys(window=4) == 2 * 4
    assert keys(window=4, layer_pattern=("local", "global")) == 4 + 16
    assert keys(window=100) == 2 * 16
