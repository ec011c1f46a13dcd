import copy

import pytest
import safetensors.torch
import torch

from pellucid.errors import RunFolderError
from pellucid.loss import cross_entropy
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM
from pellucid.optim import Muon, build_optimizer
from pellucid.training_config import OptimizerConfig

CONFIG = ModelConfig(
    vocab_size=50, context_length=16, d_model=32, num_layers=2, num_heads=4, num_kv_heads=2, qk_norm="head", d_ff=64
)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return TransformerLM(CONFIG)


def train(model, optimizer, steps):
    for step in steps:
        tokens = torch.randint(50, (2, 9), generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        cross_entropy(model(tokens[:, :-1]), tokens[:, 1:]).backward()
        optimizer.set_learning_rate(1 / (1 + step))
        optimizer.step()


def equal(one, other):
    return all(a.equal(b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("matrix_algorithm", ["muon", "adamw"])
def test_it_learns_a_batch_by_heart(model, matrix_algorithm):
    optimizer = build_optimizer(model, OptimizerConfig(matrix_algorithm=matrix_algorithm))
    tokens = torch.randint(50, (2, 9), generator=torch.Generator().manual_seed(1))
    for _ in range(60):
        optimizer.zero_grad()
        loss = cross_entropy(model(tokens[:, :-1]), tokens[:, 1:])
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1


def test_the_parts_do_what_they_do_alone(model):
    twin = copy.deepcopy(model)
    settings = OptimizerConfig(matrix_weight_decay=0.1, embedding_weight_decay=0.1)
    optimizer = build_optimizer(model, settings)
    matrices, fused, vectors = [], [], []
    for name, parameter in twin.blocks.named_parameters():
        wide = parameter.ndim == 2
        (fused if "query_key_value" in name else matrices if wide else vectors).append(parameter)
    vectors.append(twin.final_norm.weight)
    muon = Muon(
        [{"params": matrices}, {"params": fused, "row_slices": (32, 16, 16)}], lr=0.02, weight_decay=0.1, momentum=0.95
    )
    adamw = torch.optim.AdamW(
        [
            {"params": [twin.token_embedding.weight], "lr": 0.009, "weight_decay": 0.1},
            {"params": [twin.lm_head.weight], "lr": 0.003, "weight_decay": 0.1},
            {"params": vectors, "lr": 0.003, "weight_decay": 0.0},
        ],
        betas=(0.9, 0.95),
    )
    for step in range(3):
        tokens = torch.randint(50, (2, 9), generator=torch.Generator().manual_seed(step))
        for one, steps in ((model, [optimizer.step]), (twin, [muon.step, adamw.step])):
            one.zero_grad()
            cross_entropy(one(tokens[:, :-1]), tokens[:, 1:]).backward()
            for do in steps:
                do()
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_resume_from_safetensors_is_exact(model, tmp_path):
    straight, resumed = model, copy.deepcopy(model)
    optimizer = build_optimizer(straight, OptimizerConfig())
    train(straight, optimizer, range(6))

    first = build_optimizer(resumed, OptimizerConfig())
    train(resumed, first, range(3))
    safetensors.torch.save_file(first.state_dict(), tmp_path / "optimizer.safetensors")
    second = build_optimizer(resumed, OptimizerConfig())
    second.load_state_dict(safetensors.torch.load_file(tmp_path / "optimizer.safetensors"))
    train(resumed, second, range(3, 6))

    assert equal(straight, resumed)
    assert all(value.equal(second.state_dict()[key]) for key, value in optimizer.state_dict().items())


def test_the_state_is_tensors_by_parameter_name(model):
    optimizer = build_optimizer(model, OptimizerConfig())
    assert optimizer.state_dict() == {}
    train(model, optimizer, range(1))
    state = optimizer.state_dict()
    assert all(isinstance(value, torch.Tensor) for value in state.values())
    names = {name for name, _ in model.named_parameters()}
    assert {key.rpartition("/")[0] for key in state} == names
    assert "blocks.0.attention.query_key_value.weight/momentum" in state
    assert "token_embedding.weight/exp_avg_sq" in state


def test_a_loaded_state_is_a_copy(model):
    optimizer = build_optimizer(model, OptimizerConfig())
    train(model, optimizer, range(1))
    kept = {key: value.clone() for key, value in optimizer.state_dict().items()}
    other = build_optimizer(model, OptimizerConfig())
    other.load_state_dict(optimizer.state_dict())
    train(model, other, range(1, 3))
    assert all(value.equal(kept[key]) for key, value in optimizer.state_dict().items())


def test_rates_are_fractions_of_the_peak_however_often_they_are_set(model):
    optimizer = build_optimizer(model, OptimizerConfig(matrix_learning_rate=0.02, head_learning_rate=0.003))
    for fraction in (0.1, 1.0, 0.5):
        optimizer.set_learning_rate(fraction)
    rates = optimizer.learning_rates()
    assert rates["matrices"] == rates["fused"] == 0.01
    assert rates["head"] == 0.0015


def test_a_rate_of_zero_moves_nothing(model):
    before = copy.deepcopy(model)
    optimizer = build_optimizer(model, OptimizerConfig(matrix_weight_decay=0.5))
    tokens = torch.randint(50, (2, 9))
    cross_entropy(model(tokens[:, :-1]), tokens[:, 1:]).backward()
    optimizer.set_learning_rate(0.0)
    optimizer.step()
    assert equal(model, before)


def test_zero_grad_forgets_all_gradients(model):
    optimizer = build_optimizer(model, OptimizerConfig())
    train(model, optimizer, range(1))
    optimizer.zero_grad()
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state | {"blocks.9.attention.output.weight/momentum": torch.zeros(1)}, "blocks.9"),
        (lambda state: state | {"lm_head.weight/momentum": torch.zeros(50, 32)}, "lm_head.weight/momentum"),
        (lambda state: state | {"lm_head.weight/exp_avg": torch.zeros(51, 32)}, r"\(51, 32\).*\(50, 32\)"),
        (lambda state: {k: v for k, v in state.items() if k != "lm_head.weight/step"}, "no lm_head.weight/step"),
    ],
)
def test_a_state_of_another_model_is_refused_and_changes_nothing(model, change, message):
    optimizer = build_optimizer(model, OptimizerConfig())
    train(model, optimizer, range(1))
    kept = dict(optimizer.state_dict())
    with pytest.raises(RunFolderError, match=message):
        optimizer.load_state_dict(change(optimizer.state_dict()))
    assert optimizer.state_dict().keys() == kept.keys()
    assert all(value.equal(kept[key]) for key, value in optimizer.state_dict().items())


def test_a_model_without_matrices_in_blocks_has_one_part():
    optimizer = build_optimizer(torch.nn.LayerNorm(4), OptimizerConfig())
    assert len(optimizer.parts) == 1
