import lzma

import pytest

from pellucid.yardsticks import chance, measure_beside, witten_bell, xz

TRAINING = ["the cat sat on the mat. " * 20, "the dog sat on the log. " * 20]
PARTS = ["the dog sat on the mat. ", "the cat ran. "]


def test_beside_the_training_text_each_yardstick_is_what_it_is_in_training():
    found = {score.name: score for score in measure_beside(PARTS, TRAINING)}
    best = min(witten_bell(TRAINING, PARTS), key=lambda score: score.bits_per_character)
    assert list(found) == ["chance", "letters", best.name, "xz", "xz after"]
    assert found["chance"].bits == chance(TRAINING, PARTS).bits
    assert found[best.name].bits == best.bits
    assert found["xz after"].bits == xz(TRAINING, PARTS).bits


def test_without_it_there_is_what_the_text_itself_tells():
    text = "".join(PARTS)
    found = measure_beside(PARTS)
    assert [score.name for score in found] == ["chance", "xz"]
    assert found[0].bits_per_character == pytest.approx(len(set(text)).bit_length() - 1, abs=1)
    assert found[1].bits == (8 * len(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)),)


def test_every_note_says_what_it_knew():
    notes = [score.note for score in measure_beside(PARTS, TRAINING, training_share=0.25)]
    assert all(notes)
    assert [("25% of the text it learned from" in note) for note in notes] == [True, True, True, False, True]


def test_a_character_that_the_training_text_never_had_costs_an_escape_for_all_but_xz():
    plain, new = (measure_beside([text], TRAINING) for text in ("the cat sat. " * 5, "the cΩt sΩt. " * 5))
    for one, other in list(zip(plain, new, strict=True))[:2]:
        assert other.bits[0] > one.bits[0] + 10 * 15


def test_if_letters_do_best_they_are_told_once():
    names = [score.name for score in measure_beside(["zzzz"], ["abcdefgz"])]
    assert names.count("letters") == 1
    assert len(names) <= 5
