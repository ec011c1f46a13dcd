"""A safetensors file is read tensor by tensor into memory of one's own; the library is the oracle."""

import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from pellucid.checkpoint import stored_tensors
from pellucid.checkpoint.stored_tensors import NUMBER_TYPES, StoredTensors
from pellucid.errors import ModelFileError

torch.manual_seed(0)
TENSORS = {
    "weight": torch.randn(7, 5),
    "scalar": torch.tensor(3.5),
    "empty": torch.zeros(0, 4),
    "narrow": torch.randn(3, 2, 4).bfloat16(),
    "half": torch.randn(11).half(),
    "whole": torch.arange(9),
    "truth": torch.tensor([True, False]),
}


@pytest.fixture
def path(tmp_path):
    save_file(TENSORS, tmp_path / "some.safetensors", {"format": "pt"})
    return tmp_path / "some.safetensors"


def test_names_shapes_types_and_numbers_are_the_librarys(path):
    stored, expected = StoredTensors(path), load_file(path)
    assert set(stored) == set(expected)
    assert len(stored) == len(TENSORS)
    for name, tensor in expected.items():
        assert stored.shape(name) == tuple(tensor.shape)
        assert stored.number_type(name) == tensor.dtype
        assert torch.equal(stored.read(name), tensor)


@pytest.mark.parametrize("kind", NUMBER_TYPES.values())
def test_every_number_type(tmp_path, kind):
    tensor = torch.arange(4).to(kind)
    save_file({"a": tensor}, tmp_path / "a.safetensors")
    assert torch.equal(StoredTensors(tmp_path / "a.safetensors").read("a"), tensor)


@pytest.mark.parametrize("name", ["weight", "narrow", "half"])
def test_numbers_are_converted_on_the_way_piece_by_piece(path, name, monkeypatch):
    monkeypatch.setattr(stored_tensors, "_TOGETHER", 4)
    for kind in (torch.float32, torch.bfloat16, torch.float64):
        target = torch.empty(TENSORS[name].shape, dtype=kind)
        StoredTensors(path).read_into(name, target)
        assert torch.equal(target, TENSORS[name].to(kind))


def test_a_target_may_be_a_part_or_a_view(path):
    whole = torch.zeros(9, 5)
    StoredTensors(path).read_into("weight", whole[1:8])
    assert torch.equal(whole[1:8], TENSORS["weight"])
    assert not whole[[0, 8]].any()
    turned = torch.zeros(5, 7)
    StoredTensors(path).read_into("weight", turned.T)
    assert torch.equal(turned.T, TENSORS["weight"])


def test_who_replaces_or_shortens_the_file_changes_nothing_that_was_read(path):
    stored = StoredTensors(path)
    before = stored.read("weight")
    kept = before.clone()
    path.write_bytes(bytes(path.stat().st_size))  # in place
    assert torch.equal(before, kept)
    path.write_bytes(b"")
    assert torch.equal(before, kept)
    with pytest.raises(ModelFileError, match="ends within weight"):
        stored.read("weight")


def test_a_file_put_in_its_place_is_not_mixed_with_it(path):
    stored = StoredTensors(path)
    save_file({name: torch.zeros_like(tensor) for name, tensor in TENSORS.items()}, path.with_name("other"))
    path.with_name("other").replace(path)
    assert torch.equal(stored.read("weight"), TENSORS["weight"])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ModelFileError, match=r"none\.safetensors.*no such file"):
        StoredTensors(tmp_path / "none.safetensors")


def test_types_of_quantised_weights_are_named(tmp_path):
    save_file({"a": torch.ones(2).to(torch.float8_e4m3fn)}, tmp_path / "a.safetensors")
    with pytest.raises(ModelFileError, match=r"F32, BF16, F16.*a as F8_E4M3"):
        StoredTensors(tmp_path / "a.safetensors").read("a")


def _bits(tensor):
    return tensor.reshape(-1).view(torch.uint8)  # NaN is not equal to itself


def _whole() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        save_file(TENSORS, f"{folder}/a")
        return Path(f"{folder}/a").read_bytes()


WHOLE = _whole()


@given(length=st.integers(0, len(WHOLE) - 1))
def test_a_file_cut_short_anywhere_is_refused(tmp_path_factory, length):
    path = tmp_path_factory.getbasetemp() / "cut.safetensors"
    path.write_bytes(WHOLE[:length])
    with pytest.raises(ModelFileError, match=r"cut\.safetensors"):
        StoredTensors(path)


@given(place=st.integers(0, len(WHOLE) - 1), byte=st.integers(0, 255))
def test_a_damaged_byte_is_refused_or_read_as_the_library_reads_it(tmp_path_factory, place, byte):
    path = tmp_path_factory.getbasetemp() / "bent.safetensors"
    path.write_bytes(WHOLE[:place] + bytes([byte]) + WHOLE[place + 1 :])
    try:
        ours = StoredTensors(path)
        read = {name: ours.read(name) for name in ours}
    except ModelFileError:
        return
    theirs = load_file(path)
    assert set(read) == set(theirs)
    assert all(
        torch.equal(read[name].view(-1).view(torch.uint8), theirs[name].view(-1).view(torch.uint8)) for name in read
    )
