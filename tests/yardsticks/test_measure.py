"""All yardsticks together: on one split, in the expected order, bounded for large texts."""

import numpy as np
import pytest

from pellucid.data import Document, SplitSample, escape_bits, sample_split, sources_of_texts
from pellucid.yardsticks import measure_yardsticks


@pytest.fixture(scope="module")
def english():
    random = np.random.default_rng(0)
    words = [word + ending for word in ("the", "of", "and", "in", "was", "for", "with") for ending in ("", "s", "ing")]
    chosen = random.choice(words, size=40_000, p=np.arange(len(words), 0, -1) / sum(range(len(words) + 1)))
    return sources_of_texts([Document("x", " ".join(chosen))])


def test_better_predictors_spend_less(english):
    found = measure_yardsticks(sample_split(english))
    chance, letters, ngram, xz = (score.bits_per_character for score in found.shown)
    assert chance > letters > ngram
    assert chance > xz > ngram
    assert found.best_ngram is min(found.ngrams, key=lambda score: score.bits_per_character)
    assert found.letters is found.ngrams[0]


def test_all_count_every_held_out_character_in_ten_passages(english):
    sample = sample_split(english)
    found = measure_yardsticks(sample)
    for score in (found.chance, *found.ngrams):
        assert score.characters == tuple(map(len, sample.held_out))
        assert score.standard_error is not None
    assert sum(found.xz.characters) == sum(map(len, sample.held_out))
    assert {score.note for score in found.shown} == {""}


def test_a_part_of_a_large_text_is_said_to_be_a_part(english):
    found = measure_yardsticks(sample_split(english, utf8_bytes=english.utf8_bytes // 4))
    assert {score.note for score in found.shown} == {"measured on 25.0% of the text, beside each held-out passage"}


def test_characters_that_the_training_text_never_has_are_counted_with_their_price():
    sample = SplitSample(("abcd" * 20,) * 10, ("ab", "aé", "éé", *("ab",) * 7), complete=True, share=1.0)
    found = measure_yardsticks(sample)
    assert found.unseen == 3
    assert found.escape_bits == escape_bits(800, 4)
    assert found.bytes_per_character == 23 / 20
