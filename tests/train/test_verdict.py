import math

import pytest

from pellucid.train.verdict import advice, against_the_table, in_figures, in_words, kept_step, letters, recites, verdict
from tests.cli.finished_run import YARDSTICKS, finished


def test_the_figure_comes_first_in_words():
    assert in_words(finished(held_out=1.8875)).startswith("On passages it never read, it hesitates between 3.7 letters")


@pytest.mark.parametrize(
    ("bits", "said"), [(0.0, "1.0"), (10.0, "1,024"), (30.0, "1e+09"), (5000.0, "1e+301"), (math.inf, "1e+301")]
)
def test_every_loss_is_a_number_of_letters(bits, said):
    assert letters(bits) == said


@pytest.mark.parametrize(
    ("lead", "error", "verdict"),
    [
        (0.2, 0.01, "Better than the best letter table (5-gram) by 0.200 ± 0.010 bits."),
        (-0.2, 0.01, "Worse than the best letter table (5-gram) by 0.200 ± 0.010 bits."),
        (
            0.009,
            0.01,
            "As good as the best letter table (5-gram): the difference, 0.009 ± 0.010 bits, is within its error.",
        ),
        (-0.009, 0.01, "As good as the best letter table (5-gram): the difference, 0.009 ± 0.010 bits, is within"),
        (0.2, None, "Better than the best letter table (5-gram) by 0.200 bits."),
    ],
)
def test_nothing_is_claimed_within_the_error_of_the_difference(lead, error, verdict):
    assert against_the_table(finished(ngram_lead=lead, ngram_lead_error=error)).startswith(verdict)


def test_where_letters_are_the_best_table_no_sequences_are_spoken_of():
    line = against_the_table(finished(yardsticks=YARDSTICKS | {"best_ngram_name": "letters"}))
    assert line.startswith("Better than counting letters by")


def test_without_an_error_none_is_told():
    assert "±" not in in_figures(finished(standard_error=None))


def test_a_run_that_learned_by_heart_says_which_step_it_kept():
    changes = {"best_step": 30, "held_out": 2.3, "last_held_out": 2.9, "train": 0.4}
    assert kept_step(finished(**changes)) == (
        "It was best at step 30, which was kept; from there on it learned the text by heart and did worse on the rest"
        " (2.900 at the end)."
    )
    assert advice(finished(**changes)) == "More text would help most; or fewer steps, or --model.dropout 0.2."
    assert "after step 30 (of 100 done), in windows" in in_figures(finished(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"best_step": 90, "last_held_out": 1.82},  # within the error
        {"best_step": 90, "last_held_out": 2.5, "train": 2.4},  # worse on both sides: not by heart
        {"best_step": 90, "last_held_out": 2.5, "train": None},
    ],
)
def test_a_best_step_that_is_not_the_last_is_named_and_nothing_more_is_claimed(changes):
    assert kept_step(finished(**changes)) == ""
    assert "after step 90 (of 100 done)" in in_figures(finished(**changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"completed": False}, ""),
        ({}, "More time would help most: --minutes 15."),
        ({"minutes": None}, "More time would help most: --steps 300."),
        ({"used_up": True, "epochs": 33.3}, "More text would help most: this one was read 33 times, which is as often"),
        ({"epochs": 0.16}, "More time would help most: it read 16% of the text; --minutes 26 would read it all."),
        ({"epochs": 1.6, "text_share": 0.1}, "More time would help most: it read 16% of the text; --minutes 26 would"),
        ({"train": 1.2}, "More text would help most: it knows what it read much better (1.20) than new text."),
        ({"train": 1.75}, "A larger model would help most, with more time: --model.d-model 256 --minutes 15."),
        ({"train": 1.2, "epochs": 0.9, "minutes": None}, "More time would help most: --steps 300."),
        ({"train": 1.75, "ngram_lead": -0.4}, "More time would help most: --minutes 15."),
        ({"train": None}, "More time would help most: --minutes 15."),
    ],
)
def test_what_would_help_follows_from_the_run(changes, said):
    assert advice(finished(**changes)).startswith(said)


def test_where_nothing_was_held_out_nobody_can_tell():
    untested = finished(held_out=None, standard_error=None, held_out_odd=None, last_held_out=None, yardsticks={})
    assert verdict(untested) == [
        "Everything was for training: how good it is on other text, nobody can tell; on what it read, 1.600 bits per"
        " character."
    ]
    assert advice(untested) == ""


@pytest.mark.parametrize("xz", [0.0, 0.01])
def test_of_a_text_that_only_repeats_itself_no_share_of_xz_is_told(xz):
    assert "xz" not in in_figures(finished(yardsticks=YARDSTICKS | {"xz": xz}))


def test_where_most_held_out_characters_were_never_met_no_figure_is_told():
    (line,) = verdict(finished(yardsticks=YARDSTICKS | {"unseen": 30}))
    assert line.startswith("Too short to be tested: 30 of the 100 held-out characters never stand in the text")


@pytest.mark.parametrize(("length", "usual", "told"), [(49, 0, False), (50, 0, True), (60, 60, False), (61, 60, True)])
def test_a_long_passage_is_recited_unless_passages_never_read_share_as_much(length, usual, told):
    assert recites(finished(copied="x" * length, usually_shared="y" * usual)) is told
