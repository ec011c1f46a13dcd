import math

import pytest
import torch

from pellucid.nn import attention_weights, causal_mask
from pellucid.optim import build_optimizer
from pellucid.train.health import attention_entropy, measure_health, weights_of
from pellucid.train.one_program import OneProgram
from pellucid.train.variant import SummedLoss, Variant, loss_function
from pellucid.training_config import OptimizerConfig
from tests.train.small_run import small_model


def batch(rows=3, length=9):
    ids = torch.randint(0, 24, (rows, length), generator=torch.Generator().manual_seed(1))
    return ids[:, :-1], ids[:, 1:]


def stepped(model):
    """The model after a step, with its gradients, and its weights before."""
    before = weights_of(model)
    total, count = loss_function(model, Variant())(*batch())
    (total / count).backward()
    optimizer = build_optimizer(model, OptimizerConfig())
    optimizer.step()
    return before


def rms(tensor):
    return tensor.detach().double().square().mean().sqrt().item()


def test_weights_gradients_and_updates_are_what_they_say():
    model = small_model(num_layers=2)
    before = stepped(model)
    modules = measure_health(model, batch(), step=1, before=before).modules
    for address in ("token_embedding", "blocks.1.attention.query_key_value", "blocks.0.feed_forward_norm", "lm_head"):
        weight, figures = model.get_submodule(address).weight, modules[address]
        moved = rms(weight - before[f"{address}.weight"]) / rms(before[f"{address}.weight"])
        assert figures["weight"] == pytest.approx(rms(weight), rel=1e-3)  # four digits are kept
        assert figures["gradient"] == pytest.approx(rms(weight.grad), rel=1e-3)
        assert figures["update_ratio"] == pytest.approx(moved, rel=1e-3)


def test_activations_are_of_the_stream_and_of_every_part():
    model = small_model(num_layers=2)
    seen = {}
    handle = model.blocks[1].register_forward_hook(lambda module, given, output: seen.update(stream=output))
    modules = measure_health(model, batch(), step=1).modules
    handle.remove()
    assert modules["blocks.1"] == {"activation": pytest.approx(rms(seen["stream"]), rel=1e-3)}
    parts = ("attention", "attention.query_key_value", "attention.output", "feed_forward", "feed_forward.down")
    for part in parts:
        assert modules[f"blocks.0.{part}"]["activation"] > 0


def test_every_module_with_weights_is_looked_at():
    model = small_model(num_layers=2)
    stepped(model)
    modules = measure_health(model, batch(), step=1, before=weights_of(model)).modules
    with_weights = {name.rpartition(".")[0] for name, _ in model.named_parameters()}
    for address in with_weights:
        assert set(modules[address]) >= {"weight", "gradient", "update_ratio", "activation"}, address


def test_only_modules_with_weights_in_them_are_looked_at():
    modules = measure_health(small_model(norm="none"), batch(), step=1).modules
    assert "blocks.0.attention" in modules
    assert not {"blocks.0.attention.rotary", "blocks.0.attention_norm", "final_norm"} & set(modules)


def test_tied_weights_are_seen_at_both_addresses():
    model = small_model(tie_embeddings=True)
    modules = measure_health(model, batch(), step=1, before=stepped(model)).modules
    assert modules["lm_head"]["update_ratio"] == modules["token_embedding"]["update_ratio"]


@pytest.mark.parametrize("window", [None, 4])
def test_entropy_is_that_of_the_weights_attention_computes_with(window):
    attention = small_model(num_kv_heads=1, window=window).blocks[0].attention
    x = torch.randn(2, 11, 32)
    entropy, ceiling = attention_entropy(attention, x)
    query, key, _ = attention.project(x)
    mask = causal_mask(torch.arange(11), 11, window)
    weights = attention_weights(query, attention.share_keys(key), mask).double()
    expected = [-sum(w * math.log(w) for w in row if w > 0) for row in weights.flatten(0, -2).tolist()]
    assert entropy.item() == pytest.approx(sum(expected) / len(expected), rel=1e-4)
    keys = [min(i + 1, window or 99) for i in range(11)]
    assert ceiling.item() == pytest.approx(sum(map(math.log, keys)) / 11, rel=1e-4)


def test_attention_that_looks_everywhere_alike_reaches_the_ceiling_within_each_document():
    attention = small_model().blocks[0].attention
    with torch.no_grad():
        attention.query_key_value.weight.zero_()
    mask = causal_mask(torch.arange(8), 8)[None] & (torch.arange(8) // 4 == torch.arange(8)[:, None] // 4)
    entropy, ceiling = attention_entropy(attention, torch.randn(1, 8, 32), None, mask)
    assert entropy.item() == pytest.approx(ceiling.item(), rel=1e-5)
    assert ceiling.item() == pytest.approx(math.log(24) / 4, rel=1e-5)


def test_of_a_long_row_some_queries_stand_for_all(monkeypatch):
    attention = small_model(context_length=64).blocks[0].attention
    x = torch.randn(1, 64, 32)
    every, ceiling = attention_entropy(attention, x)
    monkeypatch.setattr("pellucid.train.health.QUERIES", 16)
    some, some_ceiling = attention_entropy(attention, x)
    assert some.item() == pytest.approx(every.item(), rel=0.1)
    assert some_ceiling.item() == pytest.approx(ceiling.item(), rel=0.1)


def test_packed_documents_and_their_positions_are_looked_at_as_they_are():
    model = small_model()
    ids, targets = batch()
    documents = torch.tensor([[0] * 4 + [1] * 4] * 3)
    positions = torch.tensor([[0, 1, 2, 3] * 2] * 3)
    packed = measure_health(model, (ids, targets, documents, positions), step=1).modules
    ceiling = packed["blocks.0.attention"]["entropy_ceiling"]
    assert ceiling == pytest.approx(math.log(24) / 4, rel=1e-3)


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_numbers_that_are_not_finite_become_none_and_nothing_breaks(number):
    model = small_model()
    before = stepped(model)
    model.blocks[0].feed_forward.up.weight.grad[0] = number
    with torch.no_grad():
        model.blocks[0].attention.output.weight[0] = number
    modules = measure_health(model, batch(), step=1, before=before).modules
    assert modules["blocks.0.feed_forward.up"]["gradient"] is None
    assert modules["blocks.0.attention.output"]["weight"] is None
    assert modules["blocks.0"]["activation"] is None
    assert modules["blocks.0.feed_forward.up"]["weight"] > 0


def test_weights_of_zero_have_no_update_ratio():
    model = small_model()
    with torch.no_grad():
        model.blocks[0].attention.output.weight.zero_()
    modules = measure_health(model, batch(), step=1, before=stepped(model)).modules
    assert modules["blocks.0.attention.output"]["update_ratio"] is None


def test_looking_changes_nothing():
    model = small_model(dropout=0.3)
    model.train().use_fused_attention(False)
    before = stepped(model)
    weights, gradients = weights_of(model), [parameter.grad.clone() for parameter in model.parameters()]
    stream = torch.get_rng_state()
    measure_health(model, batch(), step=1, before=before)
    assert torch.equal(torch.get_rng_state(), stream)
    assert all(module.training for module in model.modules())
    assert not any(block.attention.fused for block in model.blocks)
    assert all(torch.equal(weight, weights[name]) for name, weight in model.named_parameters())
    assert all(torch.equal(p.grad, kept) for p, kept in zip(model.parameters(), gradients, strict=True))
    assert not any(module._forward_hooks for module in model.modules())


def test_a_compiled_step_is_not_compiled_anew_for_it(no_shape_checks):
    model = small_model()
    step = OneProgram(SummedLoss(model), backend="eager")
    step(*batch())
    torch._dynamo.utils.counters.clear()
    measure_health(model, batch(), step=1)
    step(*batch())
    assert not torch._dynamo.utils.counters["stats"]


def test_a_model_without_norms_or_positions_is_looked_at_too():
    model = small_model(norm="none", positions="none", qk_norm="none")
    modules = measure_health(model, batch(), step=1, before=stepped(model)).modules
    assert modules["blocks.0.feed_forward.down"]["update_ratio"] > 0
