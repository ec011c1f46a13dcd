"""Datasets by name: the library's own loading code on a folder, and a sentence where there is none."""

import json
import sys
from contextlib import suppress

import pytest

from pellucid.data import open_sources
from pellucid.data.hub import HubDataset
from pellucid.data.reading import ReadingOptions, UnclearColumn
from pellucid.errors import DataError

TEXTS = [f"A text of several words, number {number}.\r\nAnd a second line." for number in range(30)]


class Rows(list):
    """As much of a dataset as is used: rows, and a choice of columns."""

    def select_columns(self, names):
        return Rows({name: row[name] for name in names} for row in self)


class Library:
    """In the place of `datasets`."""

    def __init__(self, loaded):
        self.loaded, self.asked, self.config = loaded, [], type("Config", (), {"HF_HUB_OFFLINE": False})

    def disable_progress_bars(self):
        pass

    def load_dataset(self, *names, **options):
        self.asked.append((names, options))
        if isinstance(self.loaded, Exception):
            raise self.loaded
        return self.loaded if options["split"] is None else self.loaded[options["split"]]


@pytest.fixture
def library(monkeypatch):
    def put(loaded):
        fake = Library(loaded)
        monkeypatch.setitem(sys.modules, "datasets", fake)
        return fake

    return put


def rows(texts=TEXTS):
    return Rows({"id": number, "text": text, "label": "good"} for number, text in enumerate(texts))


def read(dataset):
    return ["".join(blocks) for blocks in dataset.documents()]


def test_each_row_is_a_document_however_often_it_is_read_and_the_network_is_asked_once(library):
    fake = library({"train": rows([*TEXTS, "", None])})
    dataset = HubDataset("hub:some/texts")
    expected = [text.replace("\r\n", "\n") for text in TEXTS]
    assert read(dataset) == read(dataset) == expected
    assert fake.asked == [(("some/texts", None), {"split": None, "streaming": True})]


def test_a_reading_that_was_broken_off_is_not_taken_for_all(library):
    library({"train": rows()})
    dataset = HubDataset("hub:some/texts")
    next(iter(dataset.documents()))
    assert len(read(dataset)) == 30


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("hub:a/b", (None, None)),
        ("hub:a/b:c", ("c", None)),
        ("hub:a/b:c:test", ("c", "test")),
        ("hub:a::test", (None, "test")),
    ],
)
def test_config_and_split_are_said_after_colons(library, name, asked):
    fake = library({"train": rows(), "test": rows()})
    read(HubDataset(name))
    ((_, config), options) = fake.asked[0]
    assert (config, options["split"]) == asked


@pytest.mark.parametrize("name", ["hub:", "hub:a:b:c:d"])
def test_a_name_of_another_form_is_refused(name):
    with pytest.raises(DataError, match="hub:NAME:CONFIG:SPLIT"):
        HubDataset(name)


def test_the_only_split_is_taken_and_several_are_asked_about(library):
    library({"validation": rows()})
    assert len(read(HubDataset("hub:a/b"))) == 30
    library({"dev": rows(), "test": rows()})
    with pytest.raises(DataError, match=r"several: dev, test: name one, as in hub:a/b::dev"):
        read(HubDataset("hub:a/b"))


def test_the_column_is_chosen_as_in_any_table(library):
    library({"train": Rows({"question": text, "answer": text[::-1]} for text in TEXTS)})
    with pytest.raises(UnclearColumn, match="--text-column"):
        read(HubDataset("hub:a/b"))
    assert len(read(HubDataset("hub:a/b", ReadingOptions(text_column="answer")))) == 30


def test_whatever_the_library_raises_is_one_sentence(library):
    library(ConnectionError("no\nroute \x1b[31m"))
    with pytest.raises(
        DataError, match=r"the dataset hub:a/b, but got ConnectionError: “no route \\x1b\[31m”.*HF_ENDPOINT"
    ):
        read(HubDataset("hub:a/b"))


def test_offline_what_was_downloaded_is_used(library):
    fake = library({"train": rows()})
    fake.config.HF_HUB_OFFLINE = True
    read(HubDataset("hub:some/texts"))
    assert fake.asked[0][1]["streaming"] is False


def test_no_code_of_a_dataset_is_ever_allowed(library):
    fake = library({"train": rows()})
    read(HubDataset("hub:some/texts"))
    assert "trust_remote_code" not in fake.asked[0][1]


def test_without_the_library_there_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DataError, match=r"pip install 'pellucid\[hub\]'"):
        open_sources(["hub:some/texts"])


def test_it_is_a_source_beside_files_and_copies_are_left_out_across_them(library, tmp_path):
    library({"train": rows([TEXTS[0], "only here " * 9])})
    (tmp_path / "a.txt").write_text(TEXTS[0].replace("\r\n", "\n"), encoding="utf-8")
    sources = open_sources([str(tmp_path / "a.txt"), "hub:a/b"], held_out_percent=0)
    assert [document.name for document in sources.documents][1:] == ["hub:a/b (text 2)"]
    assert "Read the column “text” of 1 dataset." in sources.notes
    assert sum(len(piece.text) for piece in sources.pieces()) == sources.characters


@pytest.mark.real
def test_the_real_library_reads_a_folder_of_files(tmp_path, monkeypatch):
    pytest.importorskip("datasets")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    (tmp_path / "texts").mkdir()
    for split, texts in (("train", TEXTS), ("test", TEXTS[:4])):
        lines = [json.dumps({"id": number, "text": text}) + "\n" for number, text in enumerate(texts)]
        (tmp_path / "texts" / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    for name, count in ((f"hub:{tmp_path}/texts", 30), (f"hub:{tmp_path}/texts::test", 4)):
        sources = open_sources([name], held_out_percent=0)
        assert len(sources.documents) == count
        assert "".join(piece.text for piece in sources.pieces()).startswith(TEXTS[0].replace("\r\n", "\n"))


@pytest.mark.real
def test_the_real_library_has_a_sentence_for_what_is_not_there(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    with pytest.raises(DataError, match=r"the dataset hub:no-such/dataset-at-all, but got \w+"), suppress(KeyError):
        open_sources(["hub:no-such/dataset-at-all"])
