import math

import pytest

from pellucid.errors import GenerationError
from pellucid.generation_config import GenerationConfig

pytestmark = pytest.mark.usefixtures("no_shape_checks")  # values of the wrong kind must reach our own checks


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -1),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("temperature", "hot"),
        ("temperature", None),
        ("temperature", True),
        ("top_k", 0),
        ("top_k", -1),
        ("top_k", 1.5),
        ("top_p", -0.1),
        ("top_p", 1.1),
        ("top_p", math.nan),
        ("min_p", -0.1),
        ("min_p", 2),
        ("max_tokens", -1),
        ("max_tokens", 1.5),
        ("max_tokens", "many"),
        ("max_tokens", None),
        ("num_samples", 0),
        ("seed", -1),
        ("seed", 2**63),
        ("seed", "x"),
    ],
)
def test_what_cannot_be_is_refused_by_name_and_value(name, value):
    with pytest.raises(GenerationError, match=f"Expected {name} to be .*{value!r}"):
        GenerationConfig(**{name: value})


@pytest.mark.parametrize("stop", [("",), (1,), ("a", "")])
def test_a_stop_text_is_text(stop):
    with pytest.raises(GenerationError, match="stop to be text"):
        GenerationConfig(stop=stop)


@pytest.mark.parametrize(("given", "kept"), [("END", ("END",)), (["a", "b"], ("a", "b")), ((), ())])
def test_one_stop_text_or_several_may_be_given(given, kept):
    assert GenerationConfig(stop=given).stop == kept


@pytest.mark.parametrize("temperature", [0, 0.0, 1e-8, 1e-4, 1, 1e4])
def test_every_temperature_from_0_is_taken(temperature):
    assert GenerationConfig(temperature=temperature).temperature == temperature


def test_whole_numbers_may_come_as_json_writes_them():
    config = GenerationConfig(max_tokens=20.0, top_k=5.0, seed=7.0)
    assert (config.max_tokens, config.top_k, config.seed) == (20, 5, 7)
    assert isinstance(config.max_tokens, int)
