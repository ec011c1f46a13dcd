"""The token file: what goes in comes out, and whatever does not fit is refused before it is read."""

import json
import resource
import subprocess
import sys
from contextlib import suppress
from functools import cache

import numpy as np
import pytest

from pellucid.data import TokenFile, TokenHeader, TokenWriter, check_vocabulary, token_type_for
from pellucid.data.token_file import MAGIC, TOKENS_AT
from pellucid.errors import DataError
from pellucid.text import TextTokenizer, character_tokenizer


@cache
def tokenizer_of(vocab_size: int) -> TextTokenizer:
    """A real tokenizer with so many ids: one a character, and the end of text."""
    characters = (chr(point) for point in range(32, 0x110000) if not 0xD800 <= point < 0xE000)
    tokenizer = character_tokenizer(["".join(next(characters) for _ in range(vocab_size - 1))])
    assert tokenizer.vocab_size == vocab_size
    return tokenizer


def write(path, ids, *, vocab_size=100, documents=1):
    with TokenWriter(path, tokenizer_of(vocab_size), text="a text") as writer:
        for part in np.array_split(np.asarray(ids), documents):
            writer.begin_document(tenth=0)
            writer.add(part, characters=2 * len(part), escaped=1)
    return path


def refusal(path, **options) -> str:
    with pytest.raises(DataError) as caught:
        TokenFile.open(path, **options)
    return str(caught.value)


@pytest.mark.parametrize("vocab_size", [65_535, 65_536, 65_537, 100_000])
def test_ids_around_the_limits_of_the_types_come_back_equal(tmp_path, vocab_size):
    ids = np.unique(np.clip([0, 1, 4_464, 65_534, 65_535, 65_536, 70_000, vocab_size - 1], 0, vocab_size - 1))
    tokens = TokenFile.open(write(tmp_path / "x.tokens", ids, vocab_size=vocab_size))
    assert tokens.read(1, 1 + len(ids)).tolist() == ids.tolist()
    assert tokens.header.token_type == ("uint16" if vocab_size <= 65_536 else "uint32")
    assert tokens.header.largest_id == vocab_size - 1


def test_a_file_is_a_ring_of_documents_that_begin_with_the_end_of_text(tmp_path):
    tokens = TokenFile.open(write(tmp_path / "x.tokens", [1, 2, 3, 4], documents=2))
    end = tokenizer_of(100).end_of_text_id
    assert tokens.read(0, len(tokens)).tolist() == [end, 1, 2, end, 3, 4, end]
    assert tokens.documents.tolist() == [[0, 4, 1, 0], [3, 4, 1, 0]]
    assert tokens.header.characters == 8


def test_the_header_can_be_read_by_eye_and_holds_everything(tmp_path):
    path = write(tmp_path / "x.tokens", [1, 2, 3])
    page = path.read_bytes()[:TOKENS_AT]
    described = json.loads(page[len(MAGIC) :])
    assert described == {
        "version": 1,
        "token_type": "uint16",
        "vocab_size": 100,
        "tokenizer": tokenizer_of(100).fingerprint,
        "end_of_text_id": tokenizer_of(100).end_of_text_id,
        "text": "a text",
        "num_tokens": 5,
        "largest_id": max(3, tokenizer_of(100).end_of_text_id),
        "characters": 6,
        "distinct_characters": 0,
        "num_documents": 1,
        "kind": "text",
        "num_answers": 0,
    }


def test_the_table_of_documents_is_aligned_whatever_the_number_of_ids(tmp_path):
    for number in range(5):
        tokens = TokenFile.open(write(tmp_path / "x.tokens", range(number)))
        assert tokens.header.documents_at % 8 == 0
        assert tokens.documents.tolist() == [[0, 2 * number, 1, 0]]


@pytest.mark.parametrize("ids", [[5, 100], [-1, 5], [2**31], [65_536]])
def test_an_id_outside_the_vocabulary_is_not_written(tmp_path, ids):
    with pytest.raises(DataError, match="ids from 0 to 99"):
        write(tmp_path / "x.tokens", ids)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_writing_leaves_the_old_file_and_nothing_else(tmp_path):
    path = write(tmp_path / "x.tokens", [1])
    before = path.read_bytes()
    with suppress(KeyboardInterrupt), TokenWriter(path, tokenizer_of(100), text="") as writer:
        writer.begin_document(tenth=0)
        assert len(list(tmp_path.iterdir())) == 2
        raise KeyboardInterrupt
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


class TestRefusals:
    def test_another_token_type(self, tmp_path):
        path = write(tmp_path / "x.tokens", [1])
        assert "ids of type uint32" in (message := refusal(path, token_type="uint32"))
        assert "but got uint16" in message
        assert TokenFile.open(path, token_type="uint16").header.token_type == "uint16"

    def test_another_tokenizer_of_the_same_size(self, tmp_path):
        other = character_tokenizer(["".join(chr(0x4E00 + place) for place in range(99))])
        message = refusal(write(tmp_path / "x.tokens", [1]), tokenizer=other)
        assert other.fingerprint[:12] in message
        assert tokenizer_of(100).fingerprint[:12] in message

    def test_another_tokenizer_of_another_size_with_both_sizes(self, tmp_path):
        message = refusal(write(tmp_path / "x.tokens", [1]), tokenizer=tokenizer_of(65_537))
        assert "vocabulary 65,537" in message
        assert "vocabulary 100" in message

    def test_no_file(self, tmp_path):
        assert "none.tokens" in refusal(tmp_path / "none.tokens")

    @pytest.mark.parametrize("content", [b"", b"some text", b"\x89PNG\r\n" * 1000])
    def test_another_kind_of_file(self, tmp_path, content):
        (tmp_path / "x.tokens").write_bytes(content)
        assert "another kind of file" in refusal(tmp_path / "x.tokens")

    @pytest.mark.parametrize("change", [-1, 1, -40])
    def test_a_file_that_is_cut_short_or_too_long(self, tmp_path, change):
        path = write(tmp_path / "x.tokens", range(50))
        content = path.read_bytes()
        path.write_bytes(content[:change] if change < 0 else content + b"x")
        assert f"{len(content):,} bytes" in (message := refusal(path))
        assert f"{len(content) + change:,}" in message

    @pytest.mark.parametrize(
        ("key", "value"),
        [("version", 2), ("token_type", "uint32"), ("num_tokens", -1), ("num_tokens", "5"), ("largest_id", 100)],
    )
    def test_a_header_that_cannot_be(self, tmp_path, key, value):
        path = write(tmp_path / "x.tokens", [1, 2, 3])
        content = path.read_bytes()
        header = json.loads(content[len(MAGIC) : TOKENS_AT]) | {key: value}
        path.write_bytes((MAGIC + json.dumps(header).encode()).ljust(TOKENS_AT) + content[TOKENS_AT:])
        assert ("version 2" if key == "version" else "contradicts itself") in refusal(path)

    @pytest.mark.parametrize("header", [b"[1]", b"{", b"\xff\xff", b"null"])
    def test_a_header_that_is_none(self, tmp_path, header):
        (tmp_path / "x.tokens").write_bytes((MAGIC + header).ljust(TOKENS_AT))
        assert "train on the text anew" in refusal(tmp_path / "x.tokens")

    def test_tokens_that_are_not_there(self, tmp_path):
        tokens = TokenFile.open(write(tmp_path / "x.tokens", [1, 2, 3]))
        for start, stop in ((-1, 2), (0, 6), (4, 3)):
            with pytest.raises(DataError, match="tokens 0 to 5"):
                tokens.read(start, stop)


class TestAgainstTheModel:
    def test_a_model_with_fewer_ids_than_the_file_uses_is_refused_with_all_three_numbers(self, tmp_path):
        tokens = TokenFile.open(write(tmp_path / "x.tokens", [7_999], vocab_size=8_000))
        with pytest.raises(DataError, match=r"vocabulary of 4,096.*vocabulary of 8,000, its largest id 7,999"):
            check_vocabulary(tokens, 4_096)

    def test_what_counts_is_the_largest_id_found(self, tmp_path):
        tokens = TokenFile.open(write(tmp_path / "x.tokens", [41], vocab_size=8_000))
        largest = max(41, tokens.header.end_of_text_id)
        check_vocabulary(tokens, largest + 1)
        with pytest.raises(DataError, match=f"largest id {largest:,}"):
            check_vocabulary(tokens, largest)


def test_the_type_is_the_smallest_that_fits():
    assert [token_type_for(size) for size in (2, 65_536, 65_537)] == ["uint16", "uint16", "uint32"]


READ_A_LARGE_FILE = """
import sys
from pathlib import Path
from pellucid.data import Batches, TokenFile
before = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
tokens = TokenFile.open(Path(sys.argv[1]))
print(tokens.read(len(tokens) - 5, len(tokens)).tolist())
batches = Batches(tokens, context_length=256, batch_size=256, seed=1)
for step in range(400):  # 100,000 rows touch 400 MB of pages and more
    batches.at(step)
print(int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) - before)
print(int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="sparse files, and memory counted in KiB")
def test_a_file_of_five_gibibytes_is_read_at_its_end_without_being_read_whole(tmp_path):
    small = TokenFile.open(write(tmp_path / "small.tokens", [1])).header
    fields = vars(small) | {"num_tokens": 5 << 29, "vocab_size": 5_000, "largest_id": 4_999, "num_documents": 1}
    header = TokenHeader(**fields)
    path = tmp_path / "large.tokens"
    known = np.array([4_001, 4_002, 4_003, 4_004, header.end_of_text_id], dtype="<u2")
    with path.open("wb") as file:
        file.write(header.encode())
        file.seek(header.documents_at - known.nbytes)
        file.write(known.tobytes())
        file.write(np.array([0, 0, 0, 0], dtype="<i8").tobytes())
    assert path.stat().st_size > 5 << 30
    done = subprocess.run(
        [sys.executable, "-c", READ_A_LARGE_FILE, str(path)], capture_output=True, text=True, check=True
    )
    found, grown, peak = done.stdout.splitlines()
    assert found == str(known.tolist())
    assert int(grown) < 200 << 10
    assert int(peak) < 500 << 10
    assert resource.getpagesize() <= 1 << 16
