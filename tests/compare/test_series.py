import pytest

from pellucid.compare import SeriesFile, StoppedRun, read_series, write_series
from pellucid.errors import RunFolderError


def test_what_was_written_is_read(tmp_path):
    series = SeriesFile(runs=["b", "a"], stopped={"a": StoppedRun("f", "It ended.")})
    write_series(tmp_path / "new" / "folder", series)
    assert read_series(tmp_path / "new" / "folder") == series


def test_a_folder_without_one_is_no_recipes(tmp_path):
    assert read_series(tmp_path) is None
    assert read_series(tmp_path / "nowhere") is None


@pytest.mark.parametrize("content", ["{", "[]", '{"runs": 3}', '{"runs": ["a"], "stopped": {"a": "x"}}'])
def test_a_damaged_one_is_a_sentence(tmp_path, content):
    (tmp_path / "series.json").write_text(content, encoding="utf-8")
    with pytest.raises(RunFolderError, match=r"the runs of a recipe in '\S+series.json'"):
        read_series(tmp_path)
