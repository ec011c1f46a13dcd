"""xz: what the compressor adds for the held-out text."""

import lzma
import random

from pellucid.yardsticks import xz


def test_it_is_the_difference_of_two_compressed_sizes():
    training, held_out = ["some words é " * 20, "other words "], ["some more words ", "é"]
    before, after = "".join(training).encode(), "".join(held_out).encode()
    sizes = [len(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME)) for text in (before, before + after)]
    score = xz(training, held_out)
    assert score.bits_per_character == 8 * (sizes[1] - sizes[0]) / 17
    assert score.standard_error is None


def test_what_stands_in_the_training_text_costs_little():
    text = "".join(random.Random(0).choices("abcdefgh", k=5000))
    assert xz([text], [text[1000:3000]]).bits_per_character < 0.2
    assert xz([text[::-1]], [text[1000:3000]]).bits_per_character > 2.5
