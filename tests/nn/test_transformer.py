import copy
from dataclasses import replace

import pytest
import torch

from pellucid import presets
from pellucid.errors import ShapeError
from pellucid.model_config import ModelConfig
from pellucid.nn import KVCache, TransformerLM, initialize
from pellucid.nn.block import TransformerBlock

CONFIG = ModelConfig(vocab_size=13, context_length=8, d_model=16, num_heads=2, num_layers=2)
IDS = torch.tensor([[1, 2, 3, 4], [12, 0, 5, 5]])


def _model(**choices) -> TransformerLM:
    model = TransformerLM(replace(CONFIG, **choices))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(1.0 if "norm.weight" in name else 0.0, 0.3)
    return model


# --- addresses: what recipes, converters and notebooks hold on to

EMBEDDINGS = ["token_embedding", "position_embedding"]
IN_A_BLOCK = [
    "attention_norm",
    "attention",
    "attention.query_key_value",
    "attention.output",
    "attention.query_norm",
    "attention.key_norm",
    "attention_output_norm",
    "feed_forward_norm",
    "feed_forward",
    "feed_forward.gate",
    "feed_forward.up",
    "feed_forward.down",
    "feed_forward_output_norm",
]
GOLDEN = {*EMBEDDINGS, "final_norm", "lm_head", "blocks", *(f"blocks.{i}" for i in range(2))}
GOLDEN |= {f"blocks.{i}.{name}" for i in range(2) for name in IN_A_BLOCK}
NOT_ADDRESSES = {"", "blocks.0.attention.rotary"}  # shared tables without a weight


def test_every_module_has_its_public_address():
    everything = {"norm_placement": "sandwich", "qk_norm": "head", "feed_forward": "swiglu"}
    found = {name for name, _ in _model(**everything, positions="learned").named_modules()} - NOT_ADDRESSES
    found |= {name for name, _ in _model(**everything, positions="rope").named_modules()} - NOT_ADDRESSES
    assert found == GOLDEN


def test_a_preset_has_exactly_the_weights_of_its_family():
    sizes = {"vocab_size": 13, "d_model": 16, "num_heads": 2, "num_layers": 1, "context_length": 8}
    assert list(TransformerLM(presets.default(**sizes)).state_dict()) == [
        "token_embedding.weight",
        "blocks.0.attention_norm.weight",
        "blocks.0.attention.query_key_value.weight",
        "blocks.0.attention.output.weight",
        "blocks.0.attention.query_norm.weight",
        "blocks.0.attention.key_norm.weight",
        "blocks.0.feed_forward_norm.weight",
        "blocks.0.feed_forward.gate.weight",
        "blocks.0.feed_forward.up.weight",
        "blocks.0.feed_forward.down.weight",
        "final_norm.weight",
        "lm_head.weight",
    ]
    both = ["weight", "bias"]
    assert list(TransformerLM(presets.gpt2(**sizes)).state_dict()) == [
        "token_embedding.weight",
        "position_embedding.weight",
        *(f"blocks.0.attention_norm.{kind}" for kind in both),
        *(f"blocks.0.attention.query_key_value.{kind}" for kind in both),
        *(f"blocks.0.attention.output.{kind}" for kind in both),
        *(f"blocks.0.feed_forward_norm.{kind}" for kind in both),
        *(f"blocks.0.feed_forward.up.{kind}" for kind in both),
        *(f"blocks.0.feed_forward.down.{kind}" for kind in both),
        *(f"final_norm.{kind}" for kind in both),
        "lm_head.weight",
    ]


# --- what comes out


def test_the_model_is_its_parts_in_order():
    model = _model()
    x = model.token_embedding(IDS)
    for block in model.blocks:
        assert type(block) is TransformerBlock
        x = block(x)
    torch.testing.assert_close(model(IDS), model.lm_head(model.final_norm(x)))


@pytest.mark.parametrize(
    "choices", [{}, {"logit_soft_cap": 3.0}, {"num_unused_ids": 2}, {"tie_embeddings": True}, {"head_bias": True}]
)
def test_logits_are_the_head_of_the_hidden_states(choices):
    model = _model(**choices)
    hidden = model.hidden_states(IDS)
    assert hidden.shape == (2, 4, 16)
    assert torch.equal(model(IDS), model.logits(hidden))


def test_logits_are_not_normalised():
    total = _model()(IDS).exp().sum(-1)
    assert (total - 1).abs().min() > 0.1


def test_a_soft_cap_bends_logits_below_it():
    plain, capped = _model(), _model(logit_soft_cap=2.0)
    capped.load_state_dict(plain.state_dict())
    torch.testing.assert_close(capped(IDS), 2 * torch.tanh(plain(IDS) / 2))
    assert plain(IDS).abs().max() > 2


@pytest.mark.parametrize("soft_cap", [None, 2.0])
def test_unused_ids_are_never_likely_and_change_nothing_else(soft_cap):
    model, padded = _model(logit_soft_cap=soft_cap), _model(logit_soft_cap=soft_cap, num_unused_ids=3)
    padded.load_state_dict(model.state_dict())
    logits = padded(IDS)
    assert logits.shape == (2, 4, 13)
    assert logits[..., 10:].eq(-torch.inf).all()
    assert torch.equal(logits[..., :10], model(IDS)[..., :10])
    logits.logsumexp(-1).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in padded.parameters())
    assert padded.lm_head.weight.grad[10:].eq(0).all()


def test_an_embedding_scale_multiplies_tokens_and_not_positions():
    model = _model(positions="learned", embedding_scale=3.0, num_layers=1, norm="none")
    seen = []
    model.blocks[0].register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    model(IDS)
    torch.testing.assert_close(seen[0], 3 * model.token_embedding(IDS) + model.position_embedding(torch.arange(4)))


@pytest.mark.parametrize("lengths", [None, [4, 2], [1, 4]])
def test_last_only_gives_each_rows_last_real_token(lengths):
    model = _model()
    logits = model(IDS, lengths=lengths)
    expected = torch.stack([row[length - 1 : length] for row, length in zip(logits, lengths or [4, 4], strict=True)])
    torch.testing.assert_close(model(IDS, lengths=lengths, last_only=True), expected)
    assert model.hidden_states(IDS, lengths=lengths, last_only=True).shape == (2, 1, 16)


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (1, 8), (0, 4), (2, 0)])
def test_one_token_a_full_context_and_nothing_at_all(shape):
    assert _model()(torch.zeros(shape, dtype=torch.int64)).shape == (*shape, 13)


def test_both_attention_paths_agree_and_are_chosen_for_all_layers():
    model = _model(num_heads=4, num_kv_heads=2, qk_norm="head")
    assert all(block.attention.fused for block in model.blocks)
    fused = model(IDS)
    written = model.use_fused_attention(False)(IDS)
    assert not any(block.attention.fused for block in model.blocks)
    torch.testing.assert_close(written, fused, rtol=0, atol=1e-5)
    assert not torch.equal(written, fused)


@pytest.mark.parametrize("fused", [False, True], ids=["written out", "fused"])
def test_evaluation_drops_nothing_and_draws_no_random_number(fused):
    model = _model(dropout=0.5).use_fused_attention(fused)
    assert not torch.equal(model(IDS), model(IDS))
    model.eval()
    state = torch.random.get_rng_state()
    assert torch.equal(model(IDS), model(IDS))
    assert torch.equal(torch.random.get_rng_state(), state)


def test_layers_share_one_table_of_turns_for_each_theta():
    config = replace(CONFIG, num_layers=4, window=2, layer_pattern=("local", "local", "global"), rope_theta_local=50.0)
    tables = [block.attention.rotary for block in TransformerLM(config).blocks]
    assert tables[0] is tables[1] is tables[3]
    assert tables[2] is not tables[0]
    assert (tables[0].theta, tables[2].theta) == (50.0, 10000.0)


def test_parameters_are_counted_once():
    untied, tied = TransformerLM(CONFIG), TransformerLM(replace(CONFIG, tie_embeddings=True))
    assert untied.num_parameters() - tied.num_parameters() == 13 * 16
    assert untied.num_parameters() == sum(tensor.numel() for tensor in untied.state_dict().values())


# --- tied embeddings (C2)


def _from_meta() -> TransformerLM:
    with torch.device("meta"):
        model = TransformerLM(replace(CONFIG, tie_embeddings=True))
    return initialize(model.to_empty(device="cpu"), seed=0)


def _one_step_later() -> TransformerLM:
    model = _model(tie_embeddings=True)
    model(IDS).square().mean().backward()
    torch.optim.AdamW(model.parameters(), lr=0.1).step()
    return model


TIED = {
    "made": lambda: _model(tie_embeddings=True),
    "copied": lambda: copy.deepcopy(_model(tie_embeddings=True)),
    "cast": lambda: _model(tie_embeddings=True).bfloat16(),
    "initialised": lambda: initialize(_model(tie_embeddings=True), "zero-output"),
    "from the meta device": _from_meta,
    "one step later": _one_step_later,
}


@pytest.mark.parametrize("how", TIED)
def test_tied_embeddings_share_storage(how):
    model = TIED[how]()
    assert model.lm_head.weight is model.token_embedding.weight
    assert model.lm_head.weight.data_ptr() == model.token_embedding.weight.data_ptr()
    assert model(IDS).isfinite().all()


def test_untied_embeddings_do_not():
    model = TransformerLM(CONFIG)
    assert model.lm_head.weight is not model.token_embedding.weight


def test_a_tied_weight_gathers_the_gradients_of_both_its_uses():
    model = _model(tie_embeddings=True)
    tied = torch.autograd.grad(model(IDS).square().mean(), model.token_embedding.weight)[0]
    untied = _model()
    untied.load_state_dict(model.state_dict())
    parts = torch.autograd.grad(untied(IDS).square().mean(), [untied.token_embedding.weight, untied.lm_head.weight])
    torch.testing.assert_close(tied, sum(parts))


# --- refusals: both numbers, before anything is computed


@pytest.mark.parametrize("positions", ["rope", "learned"])
def test_a_sequence_past_the_context_is_refused_by_both_numbers(positions):
    model = _model(positions=positions)
    model(torch.zeros(1, 8, dtype=torch.int64))
    for length in (9, 81):
        with pytest.raises(ShapeError, match=f"at most context_length=8 positions, but got {length}: shorten"):
            model(torch.zeros(1, length, dtype=torch.int64))


def test_without_positions_there_is_no_end():
    assert _model(positions="none")(torch.zeros(1, 81, dtype=torch.int64)).shape == (1, 81, 13)


@pytest.mark.parametrize("positions", ["rope", "learned"])
def test_a_cached_sequence_past_the_context_is_refused_by_both_numbers(positions):
    model = _model(positions=positions)
    cache = KVCache(model.config, 1, 20)
    model(torch.zeros(1, 7, dtype=torch.int64), cache=cache)
    cache.advance(7)
    with pytest.raises(ShapeError, match="context_length=8 positions, but got 9"):
        model(torch.zeros(1, 2, dtype=torch.int64), cache=cache)


@pytest.mark.parametrize("kind", ["rope", "learned"])
@pytest.mark.parametrize(("position", "named"), [(8, "got 9"), (500, "got 501"), (-1, "got position -1")])
def test_a_given_position_outside_the_table_is_refused_by_both_numbers(kind, position, named):
    with pytest.raises(ShapeError, match=rf"context_length=8.*{named}"):
        _model(positions=kind)(IDS, positions=torch.tensor([[0, 1, 2, position]]))


def test_an_id_outside_the_vocabulary_is_refused_by_both_numbers():
    with pytest.raises(ShapeError, match=r"vocab_size=13\), but got token id 13: use the model's own tokenizer"):
        _model()(torch.tensor([[1, 13]]))


@pytest.mark.parametrize("lengths", [[4], [4, 5], [4, -1], [4, 4, 4]])
def test_lengths_that_do_not_fit_are_refused(lengths):
    with pytest.raises(ShapeError, match=r"2 lengths from 0 to 4, but got \["):
        _model()(IDS, lengths=lengths)


def test_a_cache_of_another_batch_size_is_refused():
    with pytest.raises(ShapeError, match="3 rows, as the cache has, but got 2"):
        _model()(IDS, cache=KVCache(CONFIG, 3, 8))


def test_documents_beside_a_filled_cache_are_refused():
    cache = KVCache(CONFIG, 2, 8)
    cache.advance(4)
    with pytest.raises(ShapeError, match="a document id for every key, but got 4 beside 8 keys"):
        _model()(IDS, cache=cache, document_ids=torch.zeros_like(IDS))
