"""Letters that look alike: mixtures within a text, and differences between a prompt and a text, are named."""

import numpy as np
import pytest

from pellucid.data.look_alikes import LookAlikes, described, told_differences


def notes(*pieces: str) -> list[str]:
    used = np.zeros(0x110000, dtype=bool)
    watching = LookAlikes(used)
    for piece in pieces:
        codes = np.frombuffer(piece.encode("utf-32-le"), dtype="<u4")
        used[codes] = True
        watching.look(piece, codes)
    return list(watching.notes())


class TestWithinAText:
    @pytest.mark.parametrize(
        "text",
        [
            "plain English",
            "Füchse, naïve, déjà vu",
            "Все семьи похожи, see also RFC 2119",
            "علی کتاب می‌خواند",
            "علي يكتب",
            "春眠",
        ],
    )
    def test_a_text_that_is_written_in_one_way_has_no_note(self, text):
        assert notes(text * 20) == []

    def test_both_normal_forms_of_a_letter_are_told(self):
        (note,) = notes("caf\u00e9 " * 5, "cafe\u0301 " * 5)
        assert "“é”" in note
        assert "NFC and NFD" in note

    def test_marks_that_have_no_other_form_are_no_mixture(self):
        assert notes("за\u0301мок и замо\u0301к, caf\u00e9" * 5) == []

    def test_arabic_letters_in_a_persian_text_are_told_with_their_numbers(self):
        found = notes("علی و علي، کتاب و كتاب. " * 4)
        assert len(found) == 2
        assert "U+064A ARABIC LETTER YEH) 4 times beside “ی” (U+06CC ARABIC LETTER FARSI YEH) 4 times" in found[0]
        assert "U+0643" in found[1]

    def test_latin_letters_within_cyrillic_words_are_told_with_a_word(self):
        (note,) = notes("Все счaстливые сeмьи пoхожи друг на друга. " * 2)
        assert "6 times" in note
        assert "“счaстливые”" in note

    def test_latin_words_beside_cyrillic_ones_are_no_mixture(self):
        assert notes("Программа cat и Кот. Windows-окно, HTML5. " * 9) == []


class TestBetweenAPromptAndAText:
    def test_a_look_alike_is_named_with_that_of_the_text(self):
        (told,) = told_differences("علي", "علی و")
        assert told.startswith("“ي” (U+064A ARABIC LETTER YEH) is not in the text, which writes “ی” (U+06CC")

    @pytest.mark.parametrize(
        ("letter", "known"),
        [("ی", "ي"), ("ك", "ک"), ("c", "с"), ("’", "'"), ("–", "-"), ("٣", "۳"), ("，", ","), ("Α", "A")],
    )
    def test_pairs_that_keyboards_mix_up_are_known_both_ways(self, letter, known):
        assert len(told_differences(letter * 3, known)) == 1
        assert len(told_differences(known, letter)) == 1

    def test_both_normal_forms_are_known(self):
        assert "e and" not in told_differences("caf\u00e9", "cafe\u0301")[0]
        assert "U+0065" in told_differences("caf\u00e9", "cafe\u0301")[0]
        assert "U+00E9" in told_differences("cafe\u0301", "cafe\u00e9")[0]

    def test_letters_of_the_text_and_strange_ones_are_not_named(self):
        assert told_differences("abc", "abc") == ()
        assert told_differences("§", "abc") == ()
        assert told_differences("", "abc") == told_differences("a", "") == ()

    def test_nothing_that_acts_on_a_terminal_is_shown(self):
        assert described("\u202e").startswith("U+202E")
        assert described("\u00a0").startswith("U+00A0")
