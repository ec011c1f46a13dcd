"""The data card: what run.json and the first events know of the text."""

import pytest

from pellucid.report.text_card import text_card
from tests.report.invented_run import FACTS, invented_record

READ = {
    "event": "TextRead",
    "name": "x",
    "characters": 1000,
    "distinct_characters": 76,
    "notes": ["A <b> was dropped."],
}
TOKENIZED = {
    "event": "TextTokenized",
    "kind": "bpe",
    "vocab_size": 1024,
    "training_tokens": 400_000,
    "held_out_tokens": 20_000,
    "characters_per_token": 2.5,
    "reason": "0.8 % are parts",
    "text_share": 0.25,
}


def test_a_real_run_has_its_card(record):
    card = text_card(record)
    for words in ("words.txt", "4,000 characters", "single characters", "held out", "5 %"):
        assert words in card


def test_size_split_and_tokens_are_told(tmp_path):
    card = text_card(invented_record(tmp_path / "run", READ, TOKENIZED))
    for words in (
        "1,000 characters, 1.5 kB as UTF-8",
        "<dd>76</dd>",
        "5 %, 50 characters: passages, the end of each tenth of the text; 1 character of it never met in training",
        "1,024 byte pairs, 2.50 characters each",
        "since 0.8 % are parts",
        "400,000 tokens, and 20,000 to be tested on",
        "25% of the text, taken evenly",
        "A &lt;b&gt; was dropped.",
    ):
        assert words in card


def test_a_run_that_held_nothing_out_says_so(tmp_path):
    facts = FACTS | {"data": FACTS["data"] | {"held_out": {"percent": 0}}}
    assert "nothing: everything was for training" in text_card(invented_record(tmp_path / "run", facts=facts))


def test_the_alphabet_is_folded_away_and_is_text(tmp_path):
    card = text_card(invented_record(tmp_path / "run"))
    assert "<details><summary>Its characters</summary>" in card
    assert "&amp;&lt;abcصن" in card


def test_a_long_alphabet_is_shown_in_part(tmp_path):
    facts = FACTS | {"data": FACTS["data"] | {"alphabet": "".join(map(chr, range(0x4E00, 0x4E00 + 5000)))}}
    assert "… and 2,000 more" in text_card(invented_record(tmp_path / "run", facts=facts))


@pytest.mark.parametrize("data", [{}, {"held_out": 5, "documents": "two", "alphabet": None}, "text"])
def test_what_is_missing_is_left_out(tmp_path, data):
    assert "NaN" not in text_card(invented_record(tmp_path / "run", facts={"data": data}))


def test_the_card_of_a_prepared_text_is_told(tmp_path):
    assert "Letters: Latin &lt;100%&gt;." in text_card(invented_record(tmp_path / "run"), ["Letters: Latin <100%>."])


def test_before_the_text_was_read_there_is_a_sentence(tmp_path):
    assert "had not read its text yet" in text_card(invented_record(tmp_path / "run", facts={}))
