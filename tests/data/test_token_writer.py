"""A token file that is written on after a kill is the file that was written in one go."""

import dataclasses
from contextlib import suppress

import numpy as np
import pytest

from pellucid.data import TokenFile, TokenWriter, WriterState
from pellucid.data.token_file import TOKENS_AT
from pellucid.errors import DataError
from pellucid.text import character_tokenizer

TOKENIZER = character_tokenizer(["abcdefghij"])
DOCUMENTS = [f"{'abcdefghij' * number}cab"[: 7 * number + 1] for number in range(12)]


class Killed(BaseException):
    """What no `except Exception` catches."""


def write(writer, documents):
    for number, text in enumerate(documents):
        writer.begin_document(tenth=number % 10)
        writer.add(TOKENIZER.encode(text), characters=len(text))


def whole(path):
    with TokenWriter(path, TOKENIZER, text="t") as writer:
        write(writer, DOCUMENTS)
    return path.read_bytes()


@pytest.mark.parametrize("saved_after", [0, 1, 5, 12])
@pytest.mark.parametrize("lost", [0, 3])
def test_what_came_after_the_last_save_is_cut_off_and_made_again(tmp_path, saved_after, lost):
    path, state = tmp_path / "x.tokens", WriterState()
    with suppress(Killed), TokenWriter(path, TOKENIZER, text="t", state=state) as writer:
        write(writer, DOCUMENTS[:saved_after])
        state = writer.save()
        write(writer, DOCUMENTS[:lost])
        raise Killed
    assert not path.exists()
    with TokenWriter(path, TOKENIZER, text="t", state=state) as writer:
        for number, text in enumerate(DOCUMENTS[saved_after:], saved_after):
            writer.begin_document(tenth=number % 10)
            writer.add(TOKENIZER.encode(text), characters=len(text))
    assert path.read_bytes() == whole(tmp_path / "y.tokens")


def test_it_goes_on_within_a_document(tmp_path):
    path = tmp_path / "x.tokens"
    with suppress(Killed), TokenWriter(path, TOKENIZER, text="t", state=WriterState()) as writer:
        writer.begin_document(tenth=0)
        writer.add(TOKENIZER.encode("abc"), characters=3)
        state = writer.save()
        writer.add(TOKENIZER.encode("jjjjj"), characters=5)
        raise Killed
    with TokenWriter(path, TOKENIZER, text="t", state=state) as writer:
        writer.add(TOKENIZER.encode("def"), characters=3)
    tokens = TokenFile.open(path)
    assert TOKENIZER.decode(tokens.read(1, 7)) == "abcdef"
    assert tokens.documents.tolist() == [[0, 6, 0, 0]]


def test_killed_between_the_rename_and_whatever_was_to_follow_it_goes_on_too(tmp_path):
    path = tmp_path / "x.tokens"
    with TokenWriter(path, TOKENIZER, text="t", state=WriterState()) as writer:
        write(writer, DOCUMENTS[:6])
        state = writer.save()
        write(writer, DOCUMENTS[6:])
    assert path.exists()
    with TokenWriter(path, TOKENIZER, text="t", state=state) as writer:
        for number, text in enumerate(DOCUMENTS[6:], 6):
            writer.begin_document(tenth=number % 10)
            writer.add(TOKENIZER.encode(text), characters=len(text))
    assert path.read_bytes() == whole(tmp_path / "y.tokens")


def test_a_state_of_what_is_not_there_is_refused(tmp_path):
    state = dataclasses.replace(WriterState(), num_tokens=10_000)
    with pytest.raises(DataError, match="begin anew"), TokenWriter(tmp_path / "x", TOKENIZER, text="t", state=state):
        pass


def test_an_ordinary_writer_leaves_nothing_behind_when_it_fails(tmp_path):
    with suppress(Killed), TokenWriter(tmp_path / "x.tokens", TOKENIZER, text="t") as writer:
        write(writer, DOCUMENTS)
        raise Killed
    assert list(tmp_path.iterdir()) == []


def test_ids_begin_on_a_page(tmp_path):
    whole(tmp_path / "x.tokens")
    data = (tmp_path / "x.tokens").read_bytes()
    assert np.frombuffer(data, dtype="<u2", count=1, offset=TOKENS_AT)[0] == TOKENIZER.end_of_text_id
