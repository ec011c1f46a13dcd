"""What one process of the pool does with a task, and how it speaks."""

import numpy as np
import pytest

from pellucid.errors import TokenizerError
from pellucid.text import Stretch, character_tokenizer, train_byte_pairs
from pellucid.text.encoding_worker import Encoded, encode_task, receive, send

LETTERS = character_tokenizer(["abc"])


def test_only_the_first_characters_become_ids_and_all_are_counted():
    (found,) = encode_task(LETTERS, [Stretch("abcabc", 2, False)])
    assert found.ids.tolist() == LETTERS.encode("ab").tolist()
    assert found.tally.counts.sum() == 6


def test_characters_without_an_id_are_left_out_and_counted_where_that_is_allowed():
    (found,) = encode_task(LETTERS, [Stretch("a?b?", 4, True)])
    assert (found.ids.tolist(), found.escaped) == (LETTERS.encode("ab").tolist(), 2)


def test_elsewhere_they_are_an_error():
    with pytest.raises(TokenizerError, match=r"\?"):
        encode_task(LETTERS, [Stretch("a?", 2, False)])


@pytest.mark.parametrize(("size", "kind"), [(1 << 16, np.uint16), ((1 << 16) + 1, np.uint32)])
def test_ids_have_the_smallest_type_that_holds_the_vocabulary(monkeypatch, size, kind):
    tokenizer = character_tokenizer(["abc"])
    monkeypatch.setattr(tokenizer, "vocab_size", size)
    assert encode_task(tokenizer, [Stretch("abc", 3, False)])[0].ids.dtype == kind


def test_what_is_sent_is_received(tmp_path):
    tokenizer = train_byte_pairs(["low lower lowest\n" * 9], 270)
    task = [Stretch("low\nslow 🍺 and a line that is long enough\n", 20, False), Stretch("", 0, True)]
    found = encode_task(tokenizer, task)
    with (tmp_path / "frames").open("w+b") as stream:
        send(stream, task)
        send(stream, found)
        stream.seek(0)
        assert receive(stream, list[Stretch]) == task
        received = receive(stream, list[Encoded])
    for one, other in zip(received, found, strict=True):
        assert one.ids.dtype == other.ids.dtype
        assert one.ids.tolist() == other.ids.tolist()
        assert one.tally.hashes.tolist() == other.tally.hashes.tolist()
        assert (one.escaped, one.tally.lines) == (other.escaped, other.tally.lines)


def test_a_stream_that_ends_within_a_frame_is_an_end(tmp_path):
    (tmp_path / "frames").write_bytes(b"\x09\0\0\0\0\0\0\0half")
    with (tmp_path / "frames").open("rb") as stream, pytest.raises(EOFError):
        receive(stream, str)
