"""A rule gives way only by a line in docs/decisions/ that names a rule, a place that exists, and a reason."""

from tests.house.source_tree import DECISIONS, ROOT, exceptions_in, granted, report

RULES = {"file-lines", "function-lines", "constructor-arguments", "no-own-test", "hidden-import", "prints", "unsafe"}


def test_an_exception_names_a_rule_a_place_and_a_reason():
    note = "Exception: file-lines src/a.py 400, because it is a table.\nException: no-own-test src/b.py, because so."
    assert exceptions_in(note) == {
        ("file-lines", "src/a.py"): "400, because it is a table.",
        ("no-own-test", "src/b.py"): "because so.",
    }


def test_an_exception_without_a_reason_is_none():
    assert exceptions_in("Exception: file-lines src/a.py 400.") == {}


def test_every_exception_is_about_a_rule_and_a_file_that_exist():
    wrong = [
        f"{rule} {place}"
        for rule, place in granted()
        if rule not in RULES or not (ROOT / place.partition(":")[0]).exists()
    ]
    report("Exceptions in docs/decisions/ name rules and files that exist:", wrong)


def test_every_note_has_a_number_of_its_own():
    numbers = [note.name[:4] for note in DECISIONS.glob("*.md")]
    report("Notes in docs/decisions/ are numbered, each once:", sorted({n for n in numbers if numbers.count(n) > 1}))
    assert all(number.isdigit() for number in numbers)
