"""Blocks → pieces: they join to the text, are short, and do not depend on the blocks."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.data import pieces as module
from pellucid.data.pieces import PIECE_CHARACTERS, cut_pieces, printable


class TestPieces:
    @settings(deadline=None)
    @given(
        st.lists(
            st.sampled_from(["word " * 200, "line\n" * 150, "\n" * 70, "x" * 1000, "  indented\n" * 90]), max_size=9
        )
    )
    def test_pieces_join_to_the_text_and_are_short(self, parts):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "PIECE_CHARACTERS", 500)
            pieces = list(cut_pieces(parts))
        assert "".join(pieces) == "".join(parts)
        assert all(1 <= len(piece) <= 500 for piece in pieces)

    def test_cuts_do_not_depend_on_the_blocks(self):
        text = "some words in a line\n\n  and an indented one\n" * 9000
        blocks = [text[start : start + 777] for start in range(0, len(text), 777)]
        assert list(cut_pieces(blocks)) == list(cut_pieces([text]))

    def test_a_cut_falls_between_two_lines_that_touch(self):
        pieces = list(cut_pieces(["a line\n\n  indented\nanother\n" * 9000]))
        assert len(pieces) > 3
        assert all(left[-2:] in ("d\n", "r\n") and right[0] == "a" for left, right in itertools.pairwise(pieces))

    def test_a_text_without_a_space_is_cut_at_the_limit(self):
        assert [len(piece) for piece in cut_pieces(["x" * (2 * PIECE_CHARACTERS + 5)])] == [
            PIECE_CHARACTERS,
            PIECE_CHARACTERS,
            5,
        ]

    def test_no_text_has_no_piece(self):
        assert list(cut_pieces(["", ""])) == []


@pytest.mark.parametrize("text", ["plain", "漢字", "e\u0301", "👨‍👩‍👧"[:1]])
def test_printable_text_stays(text):
    assert printable(text) == text


@pytest.mark.parametrize("text", ["\x1b", "\u202e", "\udcff", "\n", "\u200b"])
def test_what_could_move_or_hide_text_is_spelled_out(text):
    assert printable(text).isascii()
