"""Which column is text: the one that can only be, or a sentence that lists them."""

import pytest

from pellucid.data.reading.columns import UnclearColumn, choose_column

REVIEWS = ["I liked it from start to end.", "Not for me, I fear, but well made.", "Would buy it again at any time."]
NUMBERS, LABELS = ["1", "2", "3"], ["a rather good one here", "a rather good one here", "a rather good one here"]
HASHES = ["5d41402abc4b2a76b9719d911017c592", "7d793037a0760186574b0282f2f435e7", "9e107d9d372bb6826bd81d3542a419d6"]


def test_the_only_column_of_sentences_is_chosen():
    assert choose_column({"id": NUMBERS, "label": LABELS, "hash": HASHES, "said": REVIEWS}, None, "x") == "said"


def test_a_single_column_is_chosen_whatever_it_holds():
    assert choose_column({"word": ["a", "b"]}, None, "x") == "word"


def test_a_usual_name_decides_between_two():
    assert choose_column({"title": REVIEWS, "Text": REVIEWS[::-1]}, None, "x") == "Text"
    assert choose_column({"id": NUMBERS, "text": ["ok", "no", "ok"]}, None, "x") == "text"


def test_a_usual_name_for_something_else_does_not_decide():
    assert choose_column({"content": NUMBERS, "review": REVIEWS}, None, "x") == "review"


def test_chinese_sentences_are_shorter():
    poems = ["床前明月光，疑是地上霜。", "举头望明月，低头思故乡。", "春眠不觉晓，处处闻啼鸟。"]
    assert choose_column({"name": ["李白", "李白", "孟浩然"], "poem": poems}, None, "x") == "poem"


def test_two_that_are_likely_are_asked_about():
    with pytest.raises(
        UnclearColumn, match=r"x\.csv, but got 2 .*“id”, “question”, “the answer”.*--text-column question"
    ):
        choose_column({"id": NUMBERS, "question": REVIEWS, "the answer": REVIEWS[::-1]}, None, "x.csv")


def test_none_that_is_likely_is_asked_about():
    with pytest.raises(UnclearColumn, match="got none that may be it, of “a”, “b”"):
        choose_column({"a": NUMBERS, "b": NUMBERS}, None, "x")


def test_the_column_asked_for_is_taken_or_the_others_are_listed():
    assert choose_column({"id": NUMBERS, "text": REVIEWS}, "id", "x") == "id"
    with pytest.raises(UnclearColumn, match="column “body” in x, but got the columns “id”, “text”"):
        choose_column({"id": NUMBERS, "text": REVIEWS}, "body", "x")


def test_names_of_columns_cannot_act_on_a_terminal_and_a_thousand_are_not_listed():
    with pytest.raises(UnclearColumn) as caught:
        choose_column({f"\x1b[31m{number}": NUMBERS for number in range(1000)}, None, "x")
    assert "\x1b" not in str(caught.value)
    assert "and 980 more" in str(caught.value)
