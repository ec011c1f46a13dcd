import dataclasses
import json

import pytest

from pellucid import train
from pellucid.train.events import Evaluated, Event, Finished, TextRead, YardsticksMeasured
from pellucid.yardsticks import Score, Yardsticks

KINDS = Event.__subclasses__()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_event_is_a_line_of_json_that_begins_with_its_name_and_leaves_nothing_out(kind):
    values = {field.name: None for field in dataclasses.fields(kind)}
    event = object.__new__(kind)
    for name in values:
        object.__setattr__(event, name, None)
    assert event.as_json() == {"event": kind.__name__, **values}
    json.dumps(event.as_json())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_event_is_public_frozen_and_made_by_keyword(kind):
    assert kind.__name__ in train.__all__
    parameters = kind.__dataclass_params__
    assert parameters.frozen
    assert all(field.kw_only for field in dataclasses.fields(kind))


def test_what_happened_cannot_be_changed():
    event = TextRead(name="a", documents=1, characters=2, distinct_characters=1, fingerprint="f")
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.name = "b"


def test_the_shown_yardsticks_are_those_that_were_measured():
    def score(name, bits, note=""):
        return Score(name, (bits,), (1,), note)

    measured = Yardsticks(
        chance=score("chance", 6.0),
        ngrams=(score("letters", 4.0), score("2-gram", 3.0), score("3-gram", 3.5)),
        xz=score("xz", 2.0, "a part"),
        bytes_per_character=1.5,
    )
    assert YardsticksMeasured.of(measured) == YardsticksMeasured(
        chance=6.0,
        letters=4.0,
        best_ngram=3.0,
        best_ngram_name="2-gram",
        xz=2.0,
        note="a part",
        best_ngram_bits=(3.0,),
        held_out_characters=(1,),
        bytes_per_character=1.5,
    )


def test_an_event_that_is_evaluated_and_one_that_is_finished_tell_the_half_that_did_not_choose():
    for kind in (Evaluated, Finished):
        assert {"held_out", "held_out_even", "held_out_odd"} <= {field.name for field in dataclasses.fields(kind)}
