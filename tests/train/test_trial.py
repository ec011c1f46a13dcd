import itertools
import math
import time

import pytest
import torch

from pellucid.errors import ConfigError
from pellucid.train import trial
from pellucid.train.device import Capabilities
from pellucid.train.events import CompileBegun, VariantTried
from pellucid.train.trial import choose_variant, pays_after, time_steps
from pellucid.train.variant import Variant, loss_function
from pellucid.training_config import TrainingConfig
from tests.train.small_run import Heard, small_model
from tests.train.test_step import make_step, spoiled

SPEEDS = {  # seconds per step that the stand-in clock gives
    "float32, written-out attention, eager": 4.0,
    "bfloat16, written-out attention, eager": 3.0,
    "float32, written-out attention, compiled": 2.0,
    "bfloat16, written-out attention, compiled": 1.0,
}


@pytest.fixture
def variants(monkeypatch):
    """Variants whose losses are the plain one, or what a test puts in their place; none is compiled, none is timed."""
    replaced = {}

    def stand_in(model, variant):
        loss = replaced.get(str(variant), lambda model: loss_function(model, Variant()))(model)

        def timed(inputs, targets):
            return loss(inputs, targets)

        timed.variant = str(variant)
        return timed

    monkeypatch.setattr(trial, "loss_function", stand_in)
    monkeypatch.setattr(trial, "product_speedup", lambda *sizes: 2.0)
    return replaced


def choose(config=None, seconds_left=math.inf, model=None, most_steps=math.inf, **settings):
    ids = torch.randint(24, (3, 17), generator=torch.Generator().manual_seed(0))
    heard = Heard()
    variant, _, seconds = choose_variant(
        model or small_model(),
        (ids[:, :-1], ids[:, 1:]),
        config or TrainingConfig(**{"minutes": 5.0, **settings}),
        lambda loss: SPEEDS[loss.variant],
        seconds_left,
        heard,
        most_steps,
    )
    return str(variant), seconds, heard


def refusals(heard):
    return {event.variant: event.reason for event in heard.of(VariantTried) if not event.admitted}


def test_the_fastest_that_is_right_is_chosen(variants):
    assert choose()[:2] == ("bfloat16, written-out attention, compiled", 1.0)


@pytest.mark.parametrize(
    ("again", "chosen"),
    [(1.05, "float32, written-out attention, compiled"), (1.3, "bfloat16, written-out attention, compiled")],
)
def test_those_near_the_fastest_are_timed_once_more(variants, monkeypatch, again, chosen):
    monkeypatch.setattr(trial, "MOST_GAIN", math.inf)
    timed = []

    def time_step(loss):
        timed.append(loss.variant)
        if loss.variant != "float32, written-out attention, compiled":
            return SPEEDS[loss.variant]
        return 1.2 if timed.count(loss.variant) == 1 else again  # a busy moment the first time, or not

    ids = torch.randint(24, (3, 17))
    variant, _, _ = choose_variant(
        small_model(),
        (ids[:, :-1], ids[:, 1:]),
        TrainingConfig(minutes=5.0),
        lambda loss: 1.1 if loss.variant == "bfloat16, written-out attention, compiled" else time_step(loss),
        math.inf,
        Heard(),
    )
    assert str(variant) == chosen
    assert timed.count("float32, written-out attention, eager") == 1  # far behind: once is enough


@pytest.mark.parametrize(("eager", "programs"), [(4.0, ["bfloat16"]), (1.7, ["bfloat16", "float32"])])
def test_no_second_program_is_made_where_the_first_is_out_of_its_reach(variants, monkeypatch, eager, programs):
    monkeypatch.setitem(SPEEDS, "float32, written-out attention, eager", eager)
    _, _, heard = choose()
    compiled = [event.variant for event in heard.of(VariantTried) if event.variant.endswith("compiled")]
    assert [variant.split(",")[0] for variant in compiled] == programs


@pytest.mark.parametrize(
    ("settings", "chosen"),
    [
        ({"precision": "float32"}, "float32, written-out attention, compiled"),
        ({"compile": "off"}, "bfloat16, written-out attention, eager"),
        ({"precision": "float32", "compile": "off"}, "float32, written-out attention, eager"),
    ],
)
def test_what_was_asked_for_is_not_tried_otherwise(variants, settings, chosen):
    variant, _, heard = choose(**settings)
    assert variant == chosen
    tried = [event.variant for event in heard.of(VariantTried)]
    assert all(settings.get("precision", "") in name for name in tried)
    assert settings.get("compile") != "off" or not any("compiled" in name for name in tried)


def test_the_fused_attention_is_used_where_it_is_asked_for(variants, monkeypatch):
    monkeypatch.setattr(trial, "time_steps", None)
    heard = Heard()
    ids = torch.randint(24, (3, 17))
    model = small_model()
    variant, _, _ = choose_variant(
        model,
        (ids[:, :-1], ids[:, 1:]),
        TrainingConfig(attention="fused", precision="float32", compile="off"),
        lambda loss: 1.0,
        math.inf,
        heard,
    )
    assert variant.attention == "fused"
    assert all(block.attention.fused for block in model.blocks)


def nan_gradients(model):
    return spoiled(model, "gradient")


def nan_loss(model):
    return spoiled(model, "loss")


def doubled_gradient(model):
    plain = loss_function(model, Variant())

    def loss(inputs, targets):
        total, count = plain(inputs, targets)
        total.register_hook(lambda gradient: 2 * gradient)
        return total, count

    return loss


@pytest.mark.parametrize(
    ("broken", "said"),
    [(nan_gradients, "is not finite"), (nan_loss, "its loss is nan"), (doubled_gradient, "is off by 100.0%")],
)
def test_a_variant_that_is_wrong_is_not_used_however_fast_and_it_is_said_why(variants, broken, said):
    variants["bfloat16, written-out attention, compiled"] = broken
    variant, _, heard = choose()
    assert variant == "float32, written-out attention, compiled"
    reasons = refusals(heard)
    assert list(reasons) == ["bfloat16, written-out attention, compiled"]
    assert said in reasons["bfloat16, written-out attention, compiled"]


def does_not_compile(model):
    def loss(inputs, targets):
        raise RuntimeError("no working C++ compiler found\nand a page of reasons")

    return loss


@pytest.mark.parametrize("compile", ["auto", "on"])
def test_what_cannot_be_compiled_is_computed_eagerly_with_one_line_of_reason(variants, compile):
    for precision in ("float32", "bfloat16"):
        variants[f"{precision}, written-out attention, compiled"] = does_not_compile
    variant, _, heard = choose(compile=compile)
    assert variant == "bfloat16, written-out attention, eager"
    for reason in refusals(heard).values():
        assert "no working C++ compiler found" in reason
        assert "\n" not in reason


@pytest.mark.parametrize("compile", ["auto", "on"])
def test_without_a_compiler_nobody_waits_for_torch_to_miss_it(variants, monkeypatch, compile):
    monkeypatch.setattr(trial.Capabilities, "of_this_machine", lambda: Capabilities(compiler=None))
    variant, _, heard = choose(compile=compile)
    assert variant == "bfloat16, written-out attention, eager"
    assert refusals(heard) == {"bfloat16, written-out attention, compiled": trial.NO_COMPILER}
    assert not heard.of(CompileBegun)


@pytest.mark.parametrize(
    ("device", "capabilities", "tried"),
    [
        ("cpu", Capabilities(), ["bfloat16", "float32"]),
        ("cuda", Capabilities(cuda=True, cuda_bfloat16=True), ["bfloat16", "float32"]),
        ("cuda", Capabilities(cuda=True, cuda_bfloat16=False), ["float32"]),
        ("mps", Capabilities(mps=True), ["float32"]),
    ],
)
def test_the_device_decides_what_number_types_are_tried(variants, monkeypatch, device, capabilities, tried):
    monkeypatch.setattr(trial.Capabilities, "of_this_machine", lambda: capabilities)
    assert trial._precisions("auto", device, 32, 51) == tried
    if "bfloat16" not in tried:
        with pytest.raises(ConfigError, match=f"Expected float32 on {device}"):
            trial._precisions("bfloat16", device, 32, 51)


def test_an_error_of_the_plain_way_is_not_hidden(variants):
    variants["float32, written-out attention, eager"] = does_not_compile
    with pytest.raises(RuntimeError, match="page of reasons"):
        choose(precision="float32", compile="off")


def test_a_number_type_that_is_wrong_here_gives_way_to_float32_though_it_was_asked_for(variants):
    variants["bfloat16, written-out attention, eager"] = nan_gradients
    variant, _, heard = choose(precision="bfloat16", compile="off")
    assert variant == "float32, written-out attention, eager"
    assert list(refusals(heard)) == ["bfloat16, written-out attention, eager"]


def test_where_nothing_is_right_it_is_said_in_a_sentence(variants):
    variants["float32, written-out attention, eager"] = nan_loss
    with pytest.raises(ConfigError, match="finite"):
        choose(precision="float32", compile="off")


def test_nothing_is_compiled_that_the_run_cannot_pay_back(variants):
    variant, _, heard = choose(seconds_left=pays_after() - 1)
    assert variant == "bfloat16, written-out attention, eager"
    assert not heard.of(CompileBegun)


@pytest.mark.parametrize(("steps", "compiles"), [(10, False), (1000, True)])
def test_a_run_that_ends_after_some_steps_compiles_if_they_take_long_enough(variants, steps, compiles):
    _, _, heard = choose(most_steps=steps)
    assert bool(heard.of(CompileBegun)) == compiles


def test_who_wants_it_compiled_gets_it_compiled_even_if_it_is_slower(variants, monkeypatch):
    monkeypatch.setitem(SPEEDS, "bfloat16, written-out attention, compiled", 9.0)
    monkeypatch.setitem(SPEEDS, "float32, written-out attention, compiled", 8.0)
    assert choose(compile="on", seconds_left=1.0)[0] == "float32, written-out attention, compiled"


def test_it_says_what_compiling_costs_and_pays_before_it_begins(variants):
    _, _, heard = choose()
    said = [type(event).__name__ for event in heard]
    compiled = [event.variant for event in heard.of(VariantTried)].index("bfloat16, written-out attention, compiled")
    assert said.index("CompileBegun") == compiled
    assert heard.of(CompileBegun)[0].pays_after_seconds == pays_after()


@pytest.mark.parametrize(
    ("capabilities", "possible"),
    [(Capabilities(compiler="g++"), True), (Capabilities(cuda=True), True), (Capabilities(), False)],
)
def test_a_run_that_goes_on_where_nothing_compiles_is_computed_eagerly(monkeypatch, capabilities, possible):
    monkeypatch.setattr(trial.Capabilities, "of_this_machine", lambda: capabilities)
    variant = Variant(precision="bfloat16", attention="fused", compiled=True)
    assert trial.still_possible(variant) == Variant(precision="bfloat16", attention="fused", compiled=possible)
    assert trial.still_possible(Variant()) == Variant()


def test_the_model_is_left_as_it_was(variants):
    model = small_model()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    choose(model=model)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert model.training


def test_steps_are_timed_with_their_update_on_batches_of_their_own(monkeypatch):
    step = make_step()
    seen = []
    at = step.batches.at
    step.batches.at = lambda number: (seen.append(number), at(number))[1]
    before = [parameter.clone() for parameter in step.parameters]
    clock = itertools.count(0.0, 0.25)
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    assert time_steps(step) == 0.25
    assert seen == list(range(len(seen)))
    assert any(not torch.equal(old, new) for old, new in zip(before, step.parameters, strict=True))


def test_steps_that_are_not_finite_take_for_ever(monkeypatch):
    """Dropout sleeps while variants are compared; here it is awake."""
    model = small_model(dropout=0.5)
    assert time_steps(make_step(model, spoiled(model, "gradient"))) == math.inf


def test_a_variant_whose_steps_are_not_finite_is_not_used(variants, monkeypatch):
    monkeypatch.setitem(SPEEDS, "bfloat16, written-out attention, compiled", math.inf)
    variant, _, heard = choose()
    assert variant == "float32, written-out attention, compiled"
    assert "of a step is not finite" in refusals(heard)["bfloat16, written-out attention, compiled"]
