"""Letters by the script they are of."""

from pellucid.text import letters_by_script


def test_digits_signs_and_marks_of_no_script_are_not_counted():
    assert letters_by_script({"1": 5, "—": 5, "\u0301": 5, "x": 1}) == {"Latin": 1}


def test_vowel_signs_count_with_their_script():
    assert letters_by_script({"क": 2, "ि": 3}) == {"Devanagari": 5}


def test_scripts_without_a_name_here_are_told_together():
    assert letters_by_script({"\U00010900": 2, "\U00010330": 3}) == {"other": 5}


def test_the_most_frequent_comes_first():
    assert list(letters_by_script({"a": 1, "я": 2, "漢": 3, "か": 4})) == ["Hiragana", "Han", "Cyrillic", "Latin"]
