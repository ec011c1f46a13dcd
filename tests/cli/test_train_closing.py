import pytest

from pellucid.cli.train_closing import QUOTED, closing_lines, one_line, originality
from tests.cli.finished_run import finished


def said(**changes):
    return "\n".join(closing_lines(finished(**changes)))


def test_a_good_run_ends_in_seven_lines():
    assert closing_lines(finished()) == [
        "On passages it never read, it hesitates between 3.5 letters a time (chance 64, the best letter table 4.0).",
        "In bits per character: 1.800 ± 0.050 (1.810 where it did not choose the step); 1.500 per byte, 72% of xz;"
        " after step 100, in windows of 256 tokens. Better than the best letter table (5-gram) by 0.200 ± 0.010 bits.",
        "It writes: the cat sat on the mat",
        "Copied? No: of the 22 characters of a sample, no more than 7 in a row stand in the text (“the cat”); ten"
        " unread passages of that length share up to 12 with it.",
        "Saved in 'runs/a book' after 4:59 min: model.safetensors (step 100), config.json, tokenizer.json,"
        " run.json, metrics.jsonl, checkpoints/; and tokens/, the text itself: share it with care.",
        "More time would help most: --minutes 15.",
        "Next:  pellucid generate 'runs/a book'",
    ]


def test_a_run_that_was_cooled_down_says_from_where():
    line = closing_lines(finished(completed=False, step=48, cooled_from=40))[0]
    assert line == "Stopped after step 48 of 100, cooled down from step 40 on; everything is saved."


def test_a_stopped_run_says_how_to_go_on_and_gives_no_advice():
    lines = closing_lines(finished(completed=False, step=40, best_step=40))
    assert lines[0] == "Stopped after step 40 of 100; everything is saved."
    assert lines[-2] == "Go on: pellucid train --resume 'runs/a book'"


def test_skipped_steps_are_told():
    assert "Skipped: 3 of 100 steps" in said(skipped_steps=3)
    assert "Skipped" not in said()


def test_what_is_long_and_stands_in_the_text_is_called_copied_in_part():
    passage = "x" * 400
    line = originality(finished(copied=passage, sample=passage + "y"))
    assert line.startswith("Copied? In part: 400 of the 401 characters of a sample stand in the text word for word, “x")
    assert len(line) < 180 + QUOTED


def test_a_sample_that_is_copied_whole_is_called_so():
    passage = "x" * 400
    assert originality(finished(copied=passage, sample=passage)).startswith("Copied? All of it: 400 of the 400")


def test_what_is_no_longer_than_people_share_is_not_called_copied():
    line = originality(finished(copied="x" * 60, sample="x" * 60 + "y", usually_shared="z" * 63))
    assert line.startswith("Copied? No: of the 61 characters of a sample, no more than 60 in a row")
    assert line.endswith("; ten unread passages of that length share up to 63 with it.")


def test_where_only_a_part_was_searched_it_is_said():
    assert "no more than 7 in a row stand in 25% of the text (“the cat”)" in originality(finished(searched_share=0.25))


def test_blanks_are_not_quoted():
    assert "no more than 3 in a row stand in the text, all of them blank;" in originality(finished(copied=" \n "))
    assert "no more than 9 in a row stand in the text (“s”, the rest blank);" in originality(
        finished(copied="s\n       ")
    )


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


@pytest.mark.parametrize("holds_text", [True, False])
def test_a_folder_that_holds_the_text_says_so(holds_text):
    lines = closing_lines(finished(holds_text=holds_text))
    assert any("the text itself: share it with care" in line for line in lines) == holds_text
