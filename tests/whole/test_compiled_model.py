"""A compiled model is the eager model, in one graph.

On processors with AMX, compiled bfloat16 with rope gave NaN gradients in other spellings of it (docs/log.md).
"""

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import cosine_similarity

from pellucid import presets
from pellucid.loss import cross_entropy
from tests.whole.models import ARCHITECTURES, random_ids, random_model

pytestmark = pytest.mark.usefixtures("no_shape_checks")
SMALL = {"vocab_size": 61, "d_model": 32, "num_heads": 2, "num_layers": 1, "context_length": 32}
WRITTEN_OUT, FUSED = False, True


@pytest.fixture(autouse=True)
def _nothing_compiled_before():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def _loss_and_gradients(model, ids, run, autocast: bool):
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        loss = cross_entropy(run(ids[:, :-1]), ids[:, 1:])
    return loss.item(), torch.autograd.grad(loss, list(model.parameters()))


def _assert_compiled_is_eager(config, *, fused: bool, autocast: bool):
    model, ids = random_model(config).use_fused_attention(fused), random_ids(2, 25)
    expected, right = _loss_and_gradients(model, ids, model, autocast=False)
    compiled = torch.compile(model, fullgraph=True, dynamic=False)
    loss, gradients = _loss_and_gradients(model, ids, compiled, autocast)
    assert loss == pytest.approx(expected, rel=1e-2 if autocast else 1e-5)
    for (name, _), found, exact in zip(model.named_parameters(), gradients, right, strict=True):
        assert found.isfinite().all(), name
        assert cosine_similarity(found.flatten(), exact.flatten(), dim=0) > (0.99 if autocast else 0.99999), name
        assert found.norm() == pytest.approx(exact.norm().item(), rel=0.1 if autocast else 1e-4), name


def test_compiled_bfloat16_with_written_out_attention_has_the_gradients_of_eager_float32():
    _assert_compiled_is_eager(presets.default(**SMALL), fused=WRITTEN_OUT, autocast=True)


@pytest.mark.slow
@pytest.mark.parametrize("autocast", [False, True], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("fused", [WRITTEN_OUT, FUSED], ids=["written out", "fused"])
def test_the_default_compiles_to_what_it_is_in_every_variant(fused, autocast):
    _assert_compiled_is_eager(ARCHITECTURES["default"], fused=fused, autocast=autocast)


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_architecture_compiles_to_what_it_is(name):
    config = replace(ARCHITECTURES[name], num_layers=1, layer_pattern=())
    _assert_compiled_is_eager(config, fused=WRITTEN_OUT, autocast=True)


@pytest.mark.parametrize(("name", "fused"), [("gemma3", WRITTEN_OUT), ("gpt2", FUSED)])
def test_a_forward_is_one_graph(name, fused):
    model, ids = random_model(ARCHITECTURES[name]).use_fused_attention(fused), random_ids(2, 24)
    compiled = torch.compile(model, fullgraph=True, dynamic=False, backend="eager")  # traced, not compiled: quick
    document_ids = torch.tensor([[0] * 10 + [1] * 14] * 2)
    for arguments in ({}, {"document_ids": document_ids, "lengths": [24, 7], "last_only": True}):
        torch.testing.assert_close(compiled(ids, **arguments), model(ids, **arguments))
