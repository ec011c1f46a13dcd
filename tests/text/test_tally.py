"""What is counted in a piece of text."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pellucid.text import tally
from pellucid.text.tally import FEWEST_CHARACTERS

LINES = st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=60))


@given(LINES)
def test_it_equals_counting_by_hand(lines):
    text = "\n".join(lines)
    found = tally([text])
    assert dict(zip(map(chr, found.codes.tolist()), found.counts.tolist(), strict=True)) == Counter(text)
    assert found.lines == sum(bool(line) for line in lines)
    assert found.longest == max(map(len, lines), default=0)
    assert len(found.hashes) == sum(len(line) >= FEWEST_CHARACTERS for line in lines)


@given(LINES)
def test_lines_have_one_hash_if_and_only_if_they_are_equal(lines):
    told = [line for line in lines if len(line) >= FEWEST_CHARACTERS]
    hashes = tally([*lines[:3], "\n".join(lines[3:])]).hashes.tolist()
    assert len(set(hashes)) == len(set(told))
    assert all(hashes[told.index(line)] == own for line, own in zip(told, hashes, strict=True))


def test_a_line_has_its_hash_wherever_it_stands():
    line = "the quality of mercy is not strained 🍺"
    alone, later = tally([line]).hashes, tally([f"something else\n\nand more that is long enough\n{line}\n"]).hashes
    assert alone[0] == later[-1]


def test_many_similar_lines_have_hashes_of_their_own():
    hashes = tally([f"line number {number:09d} of a long table" for number in range(20_000)]).hashes
    assert len(np.unique(hashes)) == 20_000


def test_an_empty_text_has_nothing():
    for found in (tally([""]), tally([])):
        assert (found.lines, found.longest, len(found.codes), len(found.hashes)) == (0, 0, 0, 0)


@given(LINES)
def test_pieces_counted_together_are_pieces_counted_apart(lines):
    together, apart = tally(lines), [tally([line]) for line in lines]
    assert together.counts.sum() == sum(one.counts.sum() for one in apart)
    assert together.lines == sum(one.lines for one in apart)
    assert together.hashes.tolist() == [number for one in apart for number in one.hashes.tolist()]
    assert not {10} & set(together.codes.tolist())
