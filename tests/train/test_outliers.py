import pytest

from pellucid.train.events import ModuleHealth
from pellucid.train.outliers import FACTOR, stands_out


def blocks(*values, quantity="gradient", part="attention.output"):
    modules = {f"blocks.{i}.{part}": {quantity: value} for i, value in enumerate(values)}
    return ModuleHealth(step=1, modules=modules, seconds=0.0)


def names(now, earlier=None):
    return [(outlier.module, outlier.quantity) for outlier in stands_out(now, earlier)]


@pytest.mark.parametrize("quantity", ["gradient", "weight", "activation", "update_ratio"])
def test_a_module_far_above_its_kind_and_growing_is_named(quantity):
    earlier, now = blocks(1.0, 1.1, 6.0, 0.9, quantity=quantity), blocks(1.0, 1.1, 40.0, 0.9, quantity=quantity)
    assert names(now, earlier) == [("blocks.2.attention.output", quantity)]


def test_it_is_said_how_far():
    (outlier,) = stands_out(blocks(0.01, 0.01, 0.01, 0.4), blocks(0.01, 0.01, 0.01, 0.05))
    assert str(outlier) == "blocks.3.attention.output: gradients 40 times those of the other blocks, and growing"


def test_one_that_always_was_far_off_is_not_named():
    assert names(blocks(1.0, 1.1, 40.0, 0.9), blocks(1.0, 1.1, 39.0, 0.9)) == []


def test_one_that_grows_within_the_bound_is_not_named():
    assert names(blocks(1.0, 1.0, FACTOR * 0.9, 1.0), blocks(1.0, 1.0, 1.0, 1.0)) == []


def test_without_an_earlier_look_nothing_grows():
    assert names(blocks(1.0, 1.0, 100.0, 1.0)) == []


def test_two_of_a_kind_have_no_middle():
    assert names(blocks(1.0, 100.0), blocks(1.0, 2.0)) == []


def test_modules_are_compared_with_their_own_kind_alone():
    now = ModuleHealth(
        step=1,
        modules={
            **{f"blocks.{i}.feed_forward.up": {"weight": 1.0} for i in range(4)},
            **{f"blocks.{i}.feed_forward.down": {"weight": 100.0} for i in range(4)},
            "lm_head": {"weight": 1e6},
        },
        seconds=0.0,
    )
    assert names(now, now) == []


def test_a_number_that_is_not_finite_is_named_at_once():
    assert names(blocks(1.0, None, 1.0)) == [("blocks.1.attention.output", "gradient")]
    assert "not finite" in str(stands_out(blocks(1.0, None, 1.0))[0])


def test_kinds_without_a_middle_above_0_break_nothing():
    assert names(blocks(0.0, 0.0, 0.0, 1.0), blocks(0.0, 0.0, 0.0, 0.5)) == []
    assert names(blocks(None, None, None, quantity="update_ratio")) == []


@pytest.mark.parametrize(("entropy", "is_out"), [(0.01, True), (0.5, False)])
def test_attention_that_has_collapsed_onto_single_keys_is_named(entropy, is_out):
    modules = {"blocks.0.attention": {"entropy": entropy, "entropy_ceiling": 4.0}}
    found = stands_out(ModuleHealth(step=1, modules=modules, seconds=0.0))
    assert [outlier.quantity for outlier in found] == ["entropy"] * is_out
    assert all("looks at one place" in str(outlier) for outlier in found)
