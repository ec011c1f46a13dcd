"""The data card says what is in a text."""

import json

from pellucid.data import open_sources, passages, pieces
from pellucid.data.card import CardCounts
from pellucid.text import tally

LONG = "a line that is long enough to be told\n"


def card_of(tmp_path, *texts, counts=None):
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.txt").write_text(text, encoding="utf-8")
    sources = open_sources([tmp_path], held_out_percent=0)
    counts = counts or CardCounts()
    for passage in passages(sources):
        counts.add(tally([passage.text]), training=True)
        counts.pass_by(passage)
    return counts.card(sources, told_lines=9, repeated_lines=3)


def test_documents_that_were_left_out_are_counted(tmp_path):
    card = card_of(tmp_path, "one", "two", "one", "", "one")
    assert (card.documents, card.duplicate_documents, card.empty_documents) == (2, 2, 1)
    assert "Documents left out: 2 that had come before, 1 empty." in card.sentences


def test_scripts_are_told_by_their_letters(tmp_path):
    card = card_of(tmp_path, "Привет, мир" * 100 + "hello" + "漢")
    assert card.letters_by_script == {"Cyrillic": 900, "Latin": 5, "Han": 1}
    assert "Letters: Cyrillic 99.3%, Latin 0.6%, Han 0.1%." in card.sentences


def test_rare_scripts_are_told_together(tmp_path):
    assert "Letters: Latin 100.0%, 2 more below 0.1% each." in card_of(tmp_path, "a" * 9999 + "яあ").sentences


def test_the_longest_line_is_found_across_pieces_and_not_across_documents(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE_CHARACTERS", 20)
    card = card_of(tmp_path, "short\n" + "x" * 130 + "\nshort", "y" * 90, "z" * 95 + "\nend")
    assert card.longest_line == 130


def test_counts_can_be_kept_and_put_back(tmp_path):
    first = CardCounts()
    card_of(tmp_path, LONG + "я" * 60, counts=first)
    again = CardCounts(json.loads(json.dumps(first.state())))
    assert again.state() == first.state()
    assert again.training_letters == first.training_letters == len(set(LONG + "я"))


def test_a_text_without_letters_has_a_card_too(tmp_path):
    assert "Letters: none." in card_of(tmp_path, "1 2 3\n").sentences
