import io

import pytest
import torch

from pellucid.convert.pickled import read_pickled
from pellucid.errors import ModelFileError


class Mischief:
    """What a pickle may hold: something to call."""

    def __reduce__(self):
        return (print, ("this must not be printed",))


@pytest.mark.parametrize("place", ["path", "text", "memory"])
def test_tensors_numbers_and_text_are_read_from_paths_and_open_files(tmp_path, place):
    content = {"weight": torch.arange(3), "iteration": 7, "names": ["a", "b"], "betas": (0.9, 0.95)}
    path, memory = tmp_path / "c.pt", io.BytesIO()
    torch.save(content, path)
    torch.save(content, memory)
    memory.seek(0)
    loaded = read_pickled({"path": path, "text": str(path), "memory": memory}[place])
    assert loaded.pop("weight").equal(torch.arange(3))
    assert loaded == {"iteration": 7, "names": ["a", "b"], "betas": (0.9, 0.95)}


def test_code_is_refused_unread(tmp_path, capsys):
    torch.save({"model": Mischief()}, tmp_path / "c.pt")
    with pytest.raises(ModelFileError, match="code"):
        read_pickled(tmp_path / "c.pt")
    assert "printed" not in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"no checkpoint", b"PK\x03\x04 cut short", b"\x80\x02}q\x00."[:3]])
def test_another_kind_of_file_is_refused_in_a_sentence(tmp_path, content):
    (tmp_path / "c.pt").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"torch\.save"):
        read_pickled(tmp_path / "c.pt")


def test_a_file_that_is_cut_short_is_refused(tmp_path):
    torch.save({"weight": torch.zeros(1000)}, tmp_path / "c.pt")
    content = (tmp_path / "c.pt").read_bytes()
    (tmp_path / "c.pt").write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelFileError):
        read_pickled(tmp_path / "c.pt")


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_pickled(tmp_path / "c.pt")
