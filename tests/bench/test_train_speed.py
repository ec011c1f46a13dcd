"""The whole measurement, at a size at which nothing compiles and no figure matters."""

import pytest

from pellucid.bench import bench_train, contender, flop_per_step, train_speed
from pellucid.bench.train_speed import cut_into_rounds
from pellucid.train.variant import Variant, loss_function
from tests.bench.small_load import small_load

BFLOAT16 = Variant(precision="bfloat16")


@pytest.fixture(autouse=True)
def _everyone_here(monkeypatch):
    """No process is started, and the planner's choice is given."""
    monkeypatch.setattr(
        train_speed, "Elsewhere", lambda load, threads, switched: contender.plain(load, switched=switched)
    )
    monkeypatch.setattr(train_speed, "plan", lambda load, say: BFLOAT16)


def _bench(load=None, variants=None, **rest):
    return bench_train(load or small_load(), variants=variants or [Variant()], steps=4, **rest)


def test_the_plain_loop_comes_first_then_ours_then_the_planners_if_it_is_another():
    report = _bench()
    assert [row.name for row in report.rows] == [train_speed.PLAIN, str(Variant()), str(BFLOAT16)]
    assert report.rows[0].ratio == 1
    assert [row.planned for row in report.rows] == [False, False, True]


def test_the_planners_choice_is_measured_once():
    assert [row.name for row in _bench(variants=(Variant(), BFLOAT16)).rows].count(str(BFLOAT16)) == 1


def test_all_come_to_the_same_loss():
    report = _bench(variants=(Variant(), Variant(attention="fused")))
    assert all(row.agrees for row in report.rows)
    assert report.rows[1].loss == pytest.approx(report.rows[0].loss, rel=1e-4)


def test_another_shape_is_compared_with_its_own_first_variant():
    report = _bench(small_load("default"))
    assert report.rows[0].name == str(Variant())
    assert report.sizes["matrix_algorithm"] == "muon"


def test_a_variant_that_is_wrong_is_refused_with_the_reason(monkeypatch):
    def wrong_if_fused(model, variant):
        loss = loss_function(model, variant)
        if variant.attention == "written-out":
            return loss
        return lambda *batch: (loss(*batch)[0] * 2, loss(*batch)[1])

    monkeypatch.setattr(train_speed, "loss_function", wrong_if_fused)
    refused = _bench(variants=(Variant(), Variant(attention="fused"))).rows[2]
    assert refused.refused.startswith("its loss is")
    assert refused.step_seconds == 0


def test_a_compiler_that_fails_refuses_its_variant_alone(monkeypatch):
    def failing(model, variant):
        if variant.compiled:
            raise RuntimeError("no compiler\nand a long story")
        return loss_function(model, variant)

    monkeypatch.setattr(train_speed, "loss_function", failing)
    report = _bench(variants=(Variant(), Variant(compiled=True)))
    assert report.rows[2].refused == "it could not be compiled (no compiler)"


def test_the_work_of_a_step_is_what_the_mathematics_asks_for():
    load = small_load()
    tokens, width, layers = load.tokens, load.config.d_model, load.config.num_layers
    weights = layers * 12 * width**2 + width * load.config.vocab_size
    scores = layers * 2 * load.batch_size * load.context_length**2 * width
    inputs_of_the_first_layer = 0  # their gradient is needed: embeddings are trained
    assert flop_per_step(load) == 6 * (weights * tokens + scores) - inputs_of_the_first_layer


def test_what_is_being_done_is_said():
    said = []
    _bench(say=said.append)
    assert said[0] == f"preparing {train_speed.PLAIN}"
    assert said[-1] == "measuring: 3 contenders, 4 rounds of 1 steps"


def test_there_is_at_least_a_round_and_a_step():
    assert cut_into_rounds(1, step_seconds=1e-3) == (1, 1)
    assert cut_into_rounds(10, step_seconds=1e-3) == (5, 2)


def test_torch_is_left_as_it_was():
    import torch

    before = torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision()
    _bench()
    assert (torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision()) == before
