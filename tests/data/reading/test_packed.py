"""Packed files: unpacked as a stream, whole or refused, and never a bomb."""

import gzip
import struct

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.data.reading import packed
from pellucid.data.reading.packed import Allowance, byte_blocks, first_bytes, is_packed, seekable
from pellucid.errors import DataError

SKIPPABLE = b"\x50\x2a\x4d\x18" + struct.pack("<I", 4) + b"skip"


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


@pytest.fixture
def file(tmp_path):
    def write(content: bytes):
        (tmp_path / "x").write_bytes(content)
        return tmp_path / "x"

    return write


def read(path) -> bytes:
    return b"".join(byte_blocks(path))


def refusal(path) -> str:
    with pytest.raises(DataError) as caught:
        read(path)
    return str(caught.value)


@settings(deadline=None, max_examples=30)
@given(st.binary(max_size=3000), st.lists(st.sampled_from([gzip.compress, zstd]), max_size=2))
def test_what_was_packed_at_most_twice_comes_back(tmp_path_factory, content, packings):
    content = b"text: " + content  # what begins as a packed file is taken for one
    data = content
    for pack in packings:
        data = pack(data)
    path = tmp_path_factory.mktemp("packed") / "x"
    path.write_bytes(data)
    assert read(path) == content
    assert is_packed(path) == bool(packings)
    with seekable(path) as copy:
        assert copy.read() == content
    assert first_bytes(path) == content


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_members_one_after_another_are_one_file(file, monkeypatch, pack, size):
    monkeypatch.setattr(packed, "READ_BYTES", size)
    assert read(file(pack(b"one, ") + pack(b"two"))) == b"one, two"


def test_zeros_after_a_gzip_member_are_padding(file):
    assert read(file(gzip.compress(b"one") + bytes(512))) == b"one"


def test_frames_of_zstd_that_are_to_be_skipped_are(file):
    assert read(file(SKIPPABLE + zstd(b"text") + SKIPPABLE)) == b"text"


def test_the_beginning_is_read_without_the_rest(file, monkeypatch):
    monkeypatch.setattr(packed, "SNIFFED_BYTES", 10)
    monkeypatch.setattr(packed, "READ_BYTES", 16)
    assert first_bytes(file(b"0123456789abcdef" * 100)) == b"0123456789"


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
@pytest.mark.parametrize("missing", [1, 3, 20])
def test_a_file_cut_short_is_refused(file, pack, missing):
    message = refusal(file(pack(b"some words " * 100)[:-missing]))
    assert "damaged or cut short" in message
    assert "get it again" in message


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_a_damaged_file_is_refused(file, pack):
    data = bytearray(pack(bytes(range(256)) * 9))
    data[len(data) // 2] ^= 0xFF
    assert "damaged or cut short" in refusal(file(bytes(data) + pack(b"more")))


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_a_bomb_is_refused_with_the_limit(file, monkeypatch, pack):
    monkeypatch.setattr(packed, "FREE_BYTES", 1 << 20)
    message = refusal(file(pack(bytes(4 << 20))))
    assert "at most 200 times its size" in message
    assert "unpack it yourself" in message


def test_text_that_packs_well_is_no_bomb(file, monkeypatch):
    monkeypatch.setattr(packed, "FREE_BYTES", 1 << 10)
    content = b"".join(b"line %d of a long log, 200 OK\n" % number for number in range(20_000))
    assert read(file(gzip.compress(content))) == content


def test_three_packings_are_refused(file):
    assert "packed at most 2 times" in refusal(file(zstd(gzip.compress(gzip.compress(b"text")))))


def test_an_allowance_counts_over_all_members():
    allowance = Allowance("x", 1 << 20)
    allowance.take(150 << 20)
    with pytest.raises(DataError, match="200 times"):
        allowance.take(60 << 20)


def test_an_empty_file_has_no_bytes(file):
    assert (read(file(b"")), first_bytes(file(b""))) == (b"", b"")


def test_a_file_that_cannot_be_opened_is_a_sentence(tmp_path):
    assert "to read" in refusal(tmp_path / "none")
    assert "to read" in refusal(tmp_path)
