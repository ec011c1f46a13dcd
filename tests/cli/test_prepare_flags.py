"""The flags of `pellucid prepare` are those of `train`, where they are of the text."""

import dataclasses

import pytest

from pellucid.cli.arguments import parse
from pellucid.cli.prepare_flags import PrepareFlags
from pellucid.cli.train_flags import TrainFlags
from pellucid.errors import UserError

SHARED = ("sources", "tokenizer", "vocab_size", "encoding", "text_column", "drop_boilerplate", "held_out")


def test_flags_of_the_text_are_called_and_begin_as_in_train():
    ours, theirs = (
        {field.name: field.default for field in dataclasses.fields(kind)} for kind in (PrepareFlags, TrainFlags)
    )
    assert {name: ours[name] for name in SHARED} == {name: theirs[name] for name in SHARED}


def test_every_flag_can_be_given():
    words = "a.txt hub:b --out d --tokenizer bpe --vocab-size 300 --encoding latin-1 --text-column body"
    flags = parse(
        PrepareFlags, [*words.split(), "--drop-boilerplate", "--held-out", "0", "--processes", "3"], "prepare"
    )
    assert flags == PrepareFlags(
        sources=("a.txt", "hub:b"),
        out="d",
        tokenizer="bpe",
        vocab_size=300,
        encoding="latin-1",
        text_column="body",
        drop_boilerplate=True,
        held_out=0,
        processes=3,
    )


def test_an_unknown_flag_has_a_neighbour():
    with pytest.raises(UserError, match="perhaps you meant --processes"):
        parse(PrepareFlags, ["--proceses", "2"], "prepare")
