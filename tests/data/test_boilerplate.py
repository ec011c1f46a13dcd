"""Licences, page numbers and running heads: found where they are, not where they are not, and left out exactly."""

import itertools

import pytest

from pellucid.data.boilerplate import Boilerplate, BoilerplateFinder, WithoutBoilerplate
from pellucid.data.pieces import cut_pieces
from pellucid.data.reading.plain import PlainText

HEADER = "The Project Gutenberg eBook of A Book\n\n*** START OF THE PROJECT GUTENBERG EBOOK A BOOK ***\n"
FOOTER = "*** END OF THE PROJECT GUTENBERG EBOOK A BOOK ***\n\nSection 1. General Terms of Use\n" * 3


def found(text: str) -> Boilerplate:
    finder = BoilerplateFinder()
    for piece in cut_pieces([text]):
        finder.look(piece, piece.encode())
    return finder.found()


def sentences(count: int) -> list[str]:
    """Lines of prose, no two the same, most of which do not end a sentence."""
    words = ("and", "so", "it", "went", "on", "from", "there", "to", "here", "then")
    return [" ".join(words[int(digit)] for digit in f"{n:06}") + " with the others," for n in range(count)]


def pages(count: int, furniture) -> str:
    lines = iter(sentences(count * 20))
    return "".join("\n".join(itertools.islice(lines, 20)) + furniture(number) for number in range(1, count + 1))


@pytest.fixture
def without(tmp_path):
    def do(text: str) -> str:
        (tmp_path / "x.txt").write_bytes(text.encode())
        reader = WithoutBoilerplate(PlainText(tmp_path / "x.txt"), found(text))
        return "".join("".join(blocks) for blocks in reader.documents())

    return do


class TestLicences:
    def test_what_stands_around_the_markers_is_found_and_left_out(self, without):
        body = "\nIt was a dark and stormy night.\n" * 50
        text = HEADER + body + FOOTER
        assert found(text).licence == len(HEADER) + len(FOOTER)
        assert without(text) == body

    def test_markers_far_apart_are_found_across_pieces(self, without):
        body = "It was a dark and stormy night, and so on.\n" * 10_000
        assert without(HEADER + body + FOOTER) == body

    def test_a_book_that_speaks_of_the_project_keeps_its_text(self):
        assert not found("He found it at Project Gutenberg, and said END OF THE STORY.\n" * 90)

    def test_an_end_without_a_start_is_not_believed(self):
        assert not found("text\n" * 50 + FOOTER)


class TestPages:
    @pytest.mark.parametrize(
        "line",
        [
            "{}",
            "[{}]",
            "- {} -",
            "— {} —",
            "   {}",
            "Page {}",
            "[Pg {}]",
            "{} of 30",
            "[Page {}]",
        ],
    )
    def test_page_numbers_that_interrupt_sentences_are_found_and_left_out(self, without, line):
        text = pages(30, lambda number: "\n\n" + line.format(number) + "\n\n")
        assert found(text).page_numbers == 30
        assert without(text) == pages(30, lambda number: "\n\n")

    def test_persian_digits_are_digits(self):
        digits = str.maketrans("0123456789", "۰۱۲۳۴۵۶۷۸۹")
        assert found(pages(30, lambda number: f"\n\n{number}\n\n".translate(digits))).page_numbers == 30

    def test_running_heads_beside_a_number_are_found_and_left_out(self, without):
        text = pages(30, lambda n: f"\n\n{n}    A TALE OF TWO\n\n" if n % 2 else f"\n\nBOOK THE FIRST    {n}\n\n")
        assert found(text).numbered_heads == {"A TALE OF TWO": 15, "BOOK THE FIRST": 15}
        assert without(text) == pages(30, lambda number: "\n\n")

    def test_running_heads_on_their_own_line_are_found_and_left_out(self, without):
        text = pages(30, lambda number: f"\n\n{number}\nA TALE OF TWO\n\n")
        assert found(text).heads == {"A TALE OF TWO": 30}
        assert without(text) == pages(30, lambda number: "\n\n")

    def test_numbers_of_verses_and_chapters_stay(self):
        verses = "".join(f"\n{n}\n\n" + "A verse that ends.\n" * 12 + "And an end at last.\n" for n in range(1, 90))
        assert not found(verses)
        assert not found("".join(f"\nChapter {n}\n\n" + "A line that ends.\n" * 30 for n in range(1, 60)))

    def test_the_names_in_a_play_stay(self):
        assert not found("".join(f"HAMLET\n{line}\nand so on,\n\n" for line in sentences(300)))

    def test_a_table_of_numbers_stays(self):
        assert not found("".join(f"{n}\n{n * 7 % 5}\n" for n in range(3000)))

    def test_years_out_of_order_stay(self):
        assert not found(pages(30, lambda number: f"\n\n{1900 + number * 37 % 100}\n\n"))

    def test_few_pages_prove_nothing(self):
        assert not found(pages(4, lambda number: f"\n\n{number}\n\n"))

    def test_the_last_page_number_has_no_line_end(self, without):
        text = pages(30, lambda number: f"\n\n{number}\n\n").removesuffix("\n\n")
        assert without(text).endswith("\n\n")
        assert "30" not in without(text)


def test_other_line_separators_do_not_cut_lines(without):
    text = pages(30, lambda number: f"\n\n{number}\n\n") + "one\u2028two\vthree\r\x85four\n"
    assert without(text).endswith("one\u2028two\vthree\r\x85four\n")


def test_an_empty_text_has_none(without):
    assert not found("")
    assert without("") == ""


def test_what_was_left_out_is_counted(tmp_path):
    text = pages(30, lambda number: f"\n\n{number}\n\n")
    (tmp_path / "x.txt").write_bytes(text.encode())
    reader = WithoutBoilerplate(PlainText(tmp_path / "x.txt"), found(text))
    for blocks in reader.documents():
        "".join(blocks)
    assert reader.changes == {"Left out {n} page number{s} and running heads.": 30}
