from pellucid.text.character_names import MOST_NAMED, named


def test_what_cannot_be_seen_is_named():
    assert named("a\u200b \u0301") == (
        "'a' (U+0061), zero width space (U+200B), space (U+0020), combining acute accent (U+0301)"
    )


def test_what_has_no_name_is_a_character_and_can_be_printed():
    assert named("\x1b\ud800") == "character (U+001B), character (U+D800)"


def test_many_are_counted():
    assert named("x" * (MOST_NAMED + 3)).endswith("'x' (U+0078) and 3 more")
