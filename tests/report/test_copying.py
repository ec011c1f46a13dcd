"""Written or copied: the verdict, and the passage at both its places."""

import re

import pytest

from pellucid.report.copying import AROUND, copied
from tests.report.invented_run import finished, invented_record

PASSAGE = "and the cat sat on the mat, as cats do; nobody knew why, nobody asked."


def _told(tmp_path, text=(), **changes) -> str:
    return copied(invented_record(tmp_path / "run", finished(**changes)), text)


def _marked(html: str) -> list[str]:
    return re.findall(r"<mark>(.*?)</mark>", html)


def test_a_short_passage_is_no_copy_and_is_shown_at_both_places(tmp_path):
    told = _told(tmp_path, ["once the ", "cat slept"])
    assert "No: of the 21 characters of the sample above, no more than 7 in a row" in told
    assert _marked(told) == ["the cat", "the cat"]
    assert "once <mark>" in told
    assert "share up to 12" in told
    assert "on the mat. " in told


@pytest.mark.parametrize(("sample", "answer"), [(f"so {PASSAGE} so", "Yes, in part: "), (PASSAGE, "Yes, all of it: ")])
def test_a_recited_passage_is_called_one(tmp_path, sample, answer):
    assert answer in _told(tmp_path, sample=sample, copied=PASSAGE)


@pytest.mark.parametrize("size", [1, 5, 30, 1000])
def test_the_place_is_found_however_the_text_comes_in_pieces(tmp_path, size):
    text = "x" * 500 + PASSAGE + "y" * 500
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    told = _told(tmp_path, pieces, sample=PASSAGE, copied=PASSAGE)
    assert _marked(told)[1] == PASSAGE
    around = re.search(r"… (x+)<mark>[^<]*</mark>(y*)", told)
    assert len(around[1]) == AROUND
    assert len(around[2]) >= min(size, AROUND)


def test_a_place_at_the_very_end_is_found(tmp_path):
    assert len(_marked(_told(tmp_path, ["x" * 50, PASSAGE], sample=PASSAGE, copied=PASSAGE))) == 2


def test_the_search_ends_in_a_text_too_long_to_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr("pellucid.report.copying.MOST_SEARCHED", 100)
    read = []

    def endless():
        while True:
            read.append(1)
            yield "x" * 60

    assert len(_marked(_told(tmp_path, endless(), sample=PASSAGE, copied=PASSAGE))) == 1
    assert len(read) == 2


def test_without_the_text_the_place_in_the_sample_is_still_shown(tmp_path):
    assert _marked(_told(tmp_path)) == ["the cat"]


def test_nothing_in_common_is_said_in_a_sentence(tmp_path):
    assert "Not one of the 21 characters" in _told(tmp_path, copied="")


def test_a_part_that_was_searched_is_said(tmp_path):
    assert "stand in the 40% that was searched" in _told(tmp_path, searched_share=0.4)


def test_without_held_out_text_there_is_no_comparison(tmp_path):
    told = _told(tmp_path, held_out=None)
    assert "written by people" not in told
    assert "For comparison" not in told


def test_passages_are_text(tmp_path, hostile):
    told = _told(tmp_path, [hostile], sample=hostile, copied=hostile, usually_shared=hostile)
    assert "<script>" not in told
    assert told.count("&lt;script&gt;") == 3


def test_a_run_without_an_end_or_a_sample_has_no_verdict(tmp_path):
    assert copied(invented_record(tmp_path / "a"), []) == ""
    assert _told(tmp_path, sample=" ") == ""
