import math

import pytest

from pellucid.cli.train_closing import QUOTED, closing_lines, duration, judgement, one_line, originality
from pellucid.train import Finished

YARDSTICKS = {"chance": 6.0, "letters": 4.8, "best_ngram": 2.0, "best_ngram_name": "5-gram", "xz": 2.5, "note": ""}
GOOD = {
    "completed": True,
    "step": 100,
    "steps": 100,
    "planned_steps": 100,
    "best_step": 100,
    "held_out": 1.8,
    "standard_error": 0.05,
    "held_out_even": 1.79,
    "held_out_odd": 1.81,
    "last_held_out": 1.8,
    "train": 1.7,
    "yardsticks": YARDSTICKS,
    "copied": "the cat",
    "sample": "the cat sat on the mat",
    "seconds": 299.0,
    "out": "runs/a book",
}


def finished(**changes):
    return Finished(**{**GOOD, **changes})


def said(**changes):
    return "\n".join(closing_lines(finished(**changes)))


def test_a_good_run_ends_in_five_lines():
    assert closing_lines(finished()) == [
        "On text it never read: 1.800 bits per character (± 0.050; 1.810 on the half that did not choose the step),"
        " after 100 steps. Better than the best table of letter sequences, 5-gram (2.00) and than xz (2.50).",
        "It writes: the cat sat on the mat",
        "Copied? No: of the 22 characters of a sample, no more than 7 in a row stand in the text (“the cat”).",
        "Saved in 'runs/a book' after 4:59 min: model.safetensors (step 100), config.json, tokenizer.json,"
        " metrics.jsonl, checkpoints.",
        "Next:  pellucid generate 'runs/a book'",
    ]


def test_a_stopped_run_says_how_to_go_on_and_how_good_it_is_so_far():
    lines = closing_lines(finished(completed=False, step=40, best_step=40))
    assert lines[0] == "Stopped after step 40 of 100; everything is saved."
    assert "so far." in lines[1]
    assert lines[-2] == "Go on: pellucid train --resume 'runs/a book'"


@pytest.mark.parametrize(
    ("held_out", "verdict"),
    [
        (1.8, "Better than the best table of letter sequences, 5-gram (2.00) and than xz (2.50)."),
        (
            1.99,
            "About as good as the best table of letter sequences, 5-gram (2.00): more time or more text would help.",
        ),
        (
            2.04,
            "About as good as the best table of letter sequences, 5-gram (2.00): more time or more text would help.",
        ),
        (2.3, "Worse than the best table of letter sequences, 5-gram (2.00): more time or more text would help."),
        (7.0, "Worse than the best table of letter sequences, 5-gram (2.00): more time or more text would help."),
    ],
)
def test_the_figure_is_judged_by_the_best_table_and_its_own_error(held_out, verdict):
    assert judgement(finished(held_out=held_out, last_held_out=held_out)).endswith(verdict)


def test_where_xz_is_better_still_it_is_said():
    line = judgement(finished(yardsticks=YARDSTICKS | {"xz": 1.5}))
    assert "Better than the best table of letter sequences, 5-gram (2.00), though not than xz (1.50)." in line


def test_where_letters_are_the_best_table_no_sequences_are_spoken_of():
    line = judgement(finished(yardsticks=YARDSTICKS | {"best_ngram_name": "letters"}))
    assert "Better than counting letters (2.00)" in line


def test_a_stopped_run_has_time_left():
    line = judgement(finished(completed=False, held_out=3.0, last_held_out=3.0))
    assert line.endswith("more time, as this run has left, or more text would help.")


def test_a_run_that_learned_by_heart_is_not_told_to_take_more_time():
    line = judgement(finished(best_step=30, held_out=2.3, last_held_out=2.9, train=0.4))
    assert "more text would help." in line
    assert "more time" not in line
    assert (
        "It was best at step 30, which is what was kept; from there on it learned the text by heart and did worse on"
        in line
    )
    assert "(2.900 at the end)" in line


@pytest.mark.parametrize(
    "changes",
    [
        {"best_step": 90, "last_held_out": 1.82},  # within the error
        {"best_step": 90, "last_held_out": 2.5, "train": 2.4},  # worse on both sides: not by heart
        {"best_step": 90, "last_held_out": 2.5, "train": None},
    ],
)
def test_a_best_step_that_is_not_the_last_is_named_and_nothing_more_is_claimed(changes):
    line = judgement(finished(**changes))
    assert "Its best step, 90, is what was kept." in line
    assert "by heart" not in line


def test_a_plan_that_was_changed_is_told():
    changed = finished(step=120, steps=120, best_step=120)
    assert "after 120 steps (100 were planned at first)." in judgement(changed)


def test_without_an_error_none_is_told():
    assert "±" not in judgement(finished(standard_error=None))


def test_skipped_steps_are_told():
    assert "Skipped: 3 of 100 steps" in said(skipped_steps=3)
    assert "Skipped" not in said()


def test_what_is_long_and_stands_in_the_text_is_called_copied_in_part():
    passage = "x" * 400
    line = originality(finished(copied=passage, sample=passage + "y"))
    assert line.startswith("Copied? In part: 400 of the 401 characters of a sample stand in the text word for word, “x")
    assert len(line) < 120 + QUOTED


def test_of_a_sample_with_nothing_in_common_not_one_character_is_claimed():
    assert (
        originality(finished(copied="")) == "Copied? No: of the 22 characters of a sample, not one stands in the text."
    )


@pytest.mark.parametrize("sample", ["", "  \n "])
def test_an_empty_sample_is_not_shown(sample):
    assert "It writes" not in said(sample=sample, copied="")


def test_a_text_on_one_line_is_cut_where_it_is_too_long():
    assert one_line("a\n\n b\tc", 10) == "a b c"
    assert one_line("a" * 20, 10) == "a" * 10 + " …"


def test_a_duration_that_is_unknown_is_called_so():
    assert duration(math.inf) == duration(math.nan) == "unknown time"
    assert duration(-1.0) == "0 s"
