"""What one process of the pool does with a task, and how it speaks."""

import numpy as np
import pytest

from pellucid.errors import TokenizerError
from pellucid.text import Stretch, character_tokenizer, train_byte_pairs
from pellucid.text.encoding_worker import Answer, encode_task, receive, send

LETTERS = character_tokenizer(["abc"])


def test_only_the_first_characters_become_ids_and_all_are_counted():
    found = encode_task(LETTERS, [Stretch("abcabc", 2, False), Stretch("abca", 0, True)])
    assert [encoded.ids.tolist() for encoded in found.encoded] == [LETTERS.encode("ab").tolist(), []]
    assert (found.training.counts.sum(), found.held_out.counts.sum()) == (6, 4)


def test_characters_without_an_id_are_left_out_and_counted_where_they_are_held_out():
    (found,) = encode_task(LETTERS, [Stretch("a?b?", 4, True)]).encoded
    assert (found.ids.tolist(), found.escaped) == (LETTERS.encode("ab").tolist(), 2)


def test_elsewhere_they_are_an_error():
    with pytest.raises(TokenizerError, match=r"\?"):
        encode_task(LETTERS, [Stretch("a?", 2, False)])


@pytest.mark.parametrize(("size", "kind"), [(1 << 16, np.uint16), ((1 << 16) + 1, np.uint32)])
def test_ids_have_the_smallest_type_that_holds_the_vocabulary(monkeypatch, size, kind):
    tokenizer = character_tokenizer(["abc"])
    monkeypatch.setattr(tokenizer, "vocab_size", size)
    assert encode_task(tokenizer, [Stretch("abc", 3, False)]).encoded[0].ids.dtype == kind


def test_what_is_sent_is_received(tmp_path):
    tokenizer = train_byte_pairs(["low lower lowest\n" * 9], 270)
    task = [Stretch("low\nslow 🍺 and a line that is long enough\n", 20, False), Stretch("", 0, True)]
    found = encode_task(tokenizer, task)
    with (tmp_path / "frames").open("w+b") as stream:
        send(stream, task)
        send(stream, found)
        stream.seek(0)
        assert receive(stream, list[Stretch]) == task
        received = receive(stream, Answer)
    for one, other in zip(received.encoded, found.encoded, strict=True):
        assert (one.ids.dtype, one.ids.tolist(), one.escaped) == (other.ids.dtype, other.ids.tolist(), other.escaped)
    for one, other in ((received.training, found.training), (received.held_out, found.held_out)):
        assert (one.hashes.tolist(), one.lines, one.longest) == (other.hashes.tolist(), other.lines, other.longest)


def test_a_stream_that_ends_within_a_frame_is_an_end(tmp_path):
    (tmp_path / "frames").write_bytes(b"\x09\0\0\0\0\0\0\0half")
    with (tmp_path / "frames").open("rb") as stream, pytest.raises(EOFError):
        receive(stream, str)
