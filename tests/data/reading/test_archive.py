"""ZIP archives: members as streams; damaged, hostile and protected ones are sentences."""

import gzip
import io
import zipfile

import pytest

from pellucid.data.reading import archive as module
from pellucid.data.reading import packed
from pellucid.data.reading.archive import Archive
from pellucid.errors import DataError


def zipped(members: dict[str, bytes], **options) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def file(tmp_path):
    def write(content: bytes):
        (tmp_path / "x.zip").write_bytes(content)
        return tmp_path / "x.zip"

    return write


def refusal(path, member: str = "a") -> str:
    with pytest.raises(DataError) as caught, Archive(path) as archive:
        archive.small(member)
    return str(caught.value)


def test_members_are_read_whole(file):
    with Archive(file(zipped({"a": b"one" * 9000, "b/c": b"two"}))) as archive:
        assert archive.names == {"a", "b/c"}
        assert (archive.small("a"), b"".join(archive.blocks("b/c"))) == (b"one" * 9000, b"two")


def test_an_archive_within_gzip_is_read(file):
    with Archive(file(gzip.compress(zipped({"a": b"one"})))) as archive:
        assert archive.small("a") == b"one"


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9, 0.99])
def test_an_archive_cut_short_is_refused(file, kept):
    data = zipped({"a": bytes(range(256)) * 90, "b": b"two"})
    assert "damaged or cut short" in refusal(file(data[: int(len(data) * kept)]))


def test_damage_inside_a_member_is_noticed(file):
    data = bytearray(zipped({"a": b"".join(b"line %d\n" % n for n in range(5000))}))
    data[len(data) // 2] ^= 0xFF
    assert "damaged or cut short" in refusal(file(bytes(data)))


def test_a_missing_member_is_named(file):
    assert "no “a” in it" in refusal(file(zipped({"b": b""})))


def test_a_bomb_is_refused_whatever_it_says_of_itself(file, monkeypatch):
    monkeypatch.setattr(packed, "FREE_BYTES", 1 << 20)
    data = zipped({"a": bytes(8 << 20)}).replace((8 << 20).to_bytes(4, "little"), (9).to_bytes(4, "little"))
    message = refusal(file(data))
    assert "at most 200 times its size" in message or "damaged" in message
    monkeypatch.setattr(module, "SMALL_BYTES", 1 << 30)
    assert "at most 200 times its size" in refusal(file(zipped({"a": bytes(8 << 20)})))


def test_a_bomb_in_parts_is_refused_too(file, monkeypatch):
    monkeypatch.setattr(packed, "FREE_BYTES", 1 << 20)
    path = file(zipped({f"{number}": bytes(1 << 19) for number in range(40)}))
    with Archive(path) as archive, pytest.raises(DataError, match="200 times"):
        list(map(archive.small, archive.names))


def test_a_list_that_is_too_long_for_one_is_refused(file, monkeypatch):
    monkeypatch.setattr(module, "SMALL_BYTES", 1000)
    assert "over 0 MiB" in refusal(file(zipped({"a": bytes(2000)})))


def test_a_password_is_told(file):
    data = bytearray(zipped({"a": b"one"}))
    central = data.rfind(b"PK\x01\x02")
    data[central + 8] |= 1
    assert "a password" in refusal(file(bytes(data)))


def test_an_unknown_compression_is_a_sentence(file):
    data = bytearray(zipped({"a": b"one"}))
    central = data.rfind(b"PK\x01\x02")
    data[central + 10 : central + 12] = (97).to_bytes(2, "little")
    assert "damaged" in refusal(file(bytes(data)))


def test_names_that_are_paths_are_only_names(file, tmp_path):
    (tmp_path / "secret").write_bytes(b"not this")
    path = file(zipped({"../secret": b"that", "/etc/passwd": b"this"}))
    with Archive(path) as archive:
        assert archive.small("../secret") == b"that"
    assert "no “../../etc/passwd” in it" in refusal(path, "../../etc/passwd")
