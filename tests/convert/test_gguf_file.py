import struct

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.convert.gguf_file import GgufFile
from pellucid.errors import ModelFileError

TEXTS = ["", "a", "Ġ the", "é", "▁中", "👍🏽"]
RANDOM = np.random.default_rng(0)
FIRST, SECOND = RANDOM.normal(size=(3, 64)).astype(np.float32), RANDOM.normal(size=(7,)).astype(np.float32)


def write(path, **more):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("a.uint32", 7)
    writer.add_int8("an.int8", -3)
    writer.add_float64("a.float64", 0.1)
    writer.add_bool("a.bool", True)
    writer.add_uint64("a.uint64", 2**60)
    writer.add_string("a.text", "größe")
    writer.add_array("texts", TEXTS)
    writer.add_array("numbers", [1.5, -2.0])
    writer.add_array("truths", [True, False])
    for key, value in more.items():
        writer.add_uint32(key.replace("__", "."), value)
    writer.add_tensor(
        "first.weight",
        gguf.quants.quantize(FIRST, gguf.GGMLQuantizationType.Q8_0),
        raw_dtype=gguf.GGMLQuantizationType.Q8_0,
    )
    writer.add_tensor("second.weight", SECOND)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return write(tmp_path_factory.mktemp("gguf") / "good.gguf")


def test_entries_are_read_as_they_were_written(good):
    metadata = GgufFile(good).metadata
    assert metadata["general.architecture"] == "llama"
    assert (metadata["a.uint32"], metadata["an.int8"], metadata["a.float64"]) == (7, -3, 0.1)
    assert (metadata["a.bool"], metadata["a.uint64"], metadata["a.text"]) == (True, 2**60, "größe")
    assert (metadata["texts"], metadata["numbers"], metadata["truths"]) == (TEXTS, [1.5, -2.0], [True, False])
    assert "nothing" not in metadata
    assert len(metadata) == len(list(metadata)) == 10


def test_everything_is_as_the_library_reads_it(good):
    file, library = GgufFile(good), gguf.GGUFReader(good)
    theirs = {key: field.contents() for key, field in library.fields.items() if not key.startswith("GGUF.")}
    assert dict(file.metadata) == theirs
    for tensor in library.tensors:
        assert file.tensors[tensor.name].shape == tuple(tensor.shape.tolist()[::-1])
        assert np.array_equal(file.stored(tensor.name), np.asarray(tensor.data).view(np.uint8).reshape(-1))
        assert np.array_equal(file.read(tensor.name), gguf.quants.dequantize(tensor.data, tensor.tensor_type))


def test_numbers_that_were_not_quantised_come_back_to_the_last_bit(good):
    assert np.array_equal(GgufFile(good).read("second.weight"), SECOND)


def test_another_alignment_is_followed(tmp_path):
    path = tmp_path / "wide.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_custom_alignment(256)
    writer.add_tensor("one", SECOND)
    writer.add_tensor("two", SECOND + 1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file = GgufFile(path)
    assert [tensor.start % 256 for tensor in file.tensors.values()] == [0, 0]
    assert np.array_equal(file.read("two"), SECOND + 1)


def test_arrays_in_arrays_are_read(tmp_path):
    inner = struct.pack("<IQ3i", 5, 3, 1, 2, 3)
    value = struct.pack("<IQ", 9, 2) + inner + struct.pack("<IQ", 8, 1) + struct.pack("<Q", 2) + b"ab"
    path = tmp_path / "nested.gguf"
    path.write_bytes(
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 3) + b"key" + struct.pack("<I", 9) + value
    )
    assert GgufFile(path).metadata["key"] == [[1, 2, 3], ["ab"]]


def test_a_missing_tensor_has_a_sentence(good):
    with pytest.raises(ModelFileError, match="'third'"):
        GgufFile(good).read("third")


def test_a_file_cut_anywhere_is_refused(good, tmp_path):
    whole, cut = good.read_bytes(), tmp_path / "cut.gguf"
    for length in range(len(whole) - 8):  # at the end stand a few bytes of padding
        cut.write_bytes(whole[:length])
        with pytest.raises(ModelFileError):
            GgufFile(cut)


@pytest.mark.parametrize(
    ("begins", "says"),
    [
        (b"PK\3\4" + bytes(40), "another kind"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version 1"),
        (b"GGUF" + struct.pack("<IQQ", 4, 0, 0), "version 4"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**62, 0), "4,611,686,018,427,387,904 tensors"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**63), "entries that are announced"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**63) + bytes(20), "bytes of a text"),
        (b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"k", 9, 8, 2**61), "texts of 'k'"),
        (b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"k", 9, 4, 2**61), "numbers of 'k'"),
        (b"GGUF" + struct.pack("<IQQQ1sI", 3, 0, 1, 1, b"k", 99), "type 99"),
        (b"GGUF" + struct.pack("<IQQQ1sI", 3, 0, 1, 1, b"k", 9) + struct.pack("<IQ", 9, 1) * 9, "4 arrays deep"),
        (b"GGUF" + struct.pack("<IQQQ1sI", 3, 0, 1, 1, b"\xff", 0) + b"1", "UTF-8"),
    ],
)
def test_what_a_file_must_not_say_at_its_beginning(tmp_path, begins, says):
    (tmp_path / "bad.gguf").write_bytes(begins)
    with pytest.raises(ModelFileError, match=says):
        GgufFile(tmp_path / "bad.gguf")


def one_tensor(path, axes=(4,), number=0, place=0, twice=False, data=bytes(64)):
    described = struct.pack("<Q1sI", 1, b"t", len(axes)) + struct.pack(f"<{len(axes)}Q", *axes)
    described += struct.pack("<IQ", number, place)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1 + twice, 0) + described * (1 + twice)
    path.write_bytes(head + bytes(-len(head) % 32) + data)
    return path


@pytest.mark.parametrize(
    ("tensor", "says"),
    [
        ({"axes": (2**40, 2**40)}, "ends at byte"),
        ({"place": 2**63}, "ends at byte"),
        ({"place": 8}, "multiples of 32"),
        ({"axes": (0,)}, "whole blocks"),
        ({"axes": (33,), "number": 8}, "whole blocks of 32"),
        ({"axes": (1, 1, 1, 1, 1)}, "1 to 4 axes"),
        ({"axes": ()}, "1 to 4 axes"),
        ({"number": 4}, "type 4 for 't'"),
        ({"twice": True}, "each tensor once"),
    ],
)
def test_what_a_file_must_not_say_of_a_tensor(tmp_path, tensor, says):
    assert GgufFile(one_tensor(tmp_path / "good.gguf")).read("t").tolist() == [0] * 4
    with pytest.raises(ModelFileError, match=says):
        GgufFile(one_tensor(tmp_path / "bad.gguf", **tensor))


def test_two_tensors_in_one_place_are_refused(good, tmp_path):
    data = bytearray(good.read_bytes())
    place = data.index(b"second.weight") + len(b"second.weight") + 4 + 8 + 4
    assert struct.unpack_from("<Q", data, place)[0] > 0
    struct.pack_into("<Q", data, place, 0)
    (tmp_path / "bad.gguf").write_bytes(data)
    with pytest.raises(ModelFileError, match="in one place"):
        GgufFile(tmp_path / "bad.gguf")


@pytest.mark.parametrize("alignment", [0, 3, 48])
def test_an_alignment_that_is_no_power_of_two_is_refused(tmp_path, alignment):
    path = write(tmp_path / "bad.gguf", general__alignment=alignment or 1)
    if not alignment:
        data = bytearray(path.read_bytes())
        place = data.index(b"general.alignment") + len(b"general.alignment") + 4
        struct.pack_into("<I", data, place, 0)
        path.write_bytes(data)
    with pytest.raises(ModelFileError, match="power of two"):
        GgufFile(path)


def test_nothing_and_a_folder_have_sentences(tmp_path):
    (tmp_path / "empty.gguf").touch()
    for path in (tmp_path / "empty.gguf", tmp_path / "none.gguf", tmp_path):
        with pytest.raises(ModelFileError, match="GGUF"):
            GgufFile(path)


@given(places=st.lists(st.tuples(st.integers(4, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_damaged_file_is_read_or_refused_and_nothing_else(good, tmp_path_factory, places):
    data = bytearray(good.read_bytes())
    for place, byte in places:
        data[place % len(data)] = byte
    path = tmp_path_factory.getbasetemp() / "damaged.gguf"
    path.write_bytes(data)
    try:
        file = GgufFile(path)
        dict(file.metadata)
        for name in file.tensors:
            file.read(name)
    except ModelFileError:
        pass
