import contextlib
import dataclasses
import io
import os
import re
import sys
import threading

import pytest

from pellucid.cli import train_screen
from pellucid.cli.train_screen import ALIVE_SECONDS, PLAIN_SECONDS, TrainScreen
from pellucid.train import (
    CompileBegun,
    Evaluated,
    Extended,
    MicroBatchHalved,
    Noticed,
    Planned,
    Replanned,
    Resumed,
    Sampled,
    StepDone,
    TextRead,
    TextTokenized,
    VariantTried,
    YardsticksMeasured,
)
from tests.cli.test_train_closing import finished

TEXT = TextRead(name="book.txt", documents=1, characters=1000, distinct_characters=60, fingerprint="f")
TOKENS = TextTokenized(kind="bpe", vocab_size=1024, training_tokens=400, held_out_tokens=40, characters_per_token=2.5)
YARDSTICKS = YardsticksMeasured(chance=6.0, letters=4.8, best_ngram=2.0, best_ngram_name="5-gram", xz=2.5)
PLANNED = Planned(
    model={"num_layers": 4, "d_model": 192, "context_length": 256},
    parameters=2_000_000,
    batch_size=16,
    micro_batch_size=16,
    tokens_per_step=4096,
    steps=744,
    epochs=6.9,
    step_seconds=0.35,
    variant="float32, written-out attention, compiled",
    threads=2,
    device="cpu",
    evaluations=10,
    minutes=5.0,
    out="runs/book-01",
)


def step_done(step, **changes):
    return dataclasses.replace(
        StepDone(
            step=step,
            steps=744,
            bits_per_character=3.5,
            train=3.21,
            gradient_norm=0.5,
            learning_rates={"matrices": 0.02},
            epoch=step / 108,
            tokens_per_second=11_000.0,
            seconds_left=150.0,
        ),
        **changes,
    )


def evaluated(step):
    return Evaluated(
        step=step,
        steps=744,
        train=2.2,
        held_out=2.345,
        standard_error=0.01,
        held_out_even=2.34,
        held_out_odd=2.35,
        is_best=True,
        seconds=2.0,
        epoch=step / 108,
        tokens_per_second=10_500.0,
        seconds_left=120.0,
    )


def whole_run(steps=744):
    yield from (TEXT, TOKENS, YARDSTICKS, CompileBegun(expected_seconds=30.0, pays_after_seconds=105.0))
    yield VariantTried(variant="bfloat16, written-out attention, compiled", admitted=False, reason="it is wrong")
    yield PLANNED
    for step in range(1, steps + 1):
        yield step_done(step)
        if step % 74 == 0:
            yield evaluated(step)
            yield Sampled(step=step, prompt="", text="To be, or not to be")
    yield finished()


class Terminal(io.StringIO):
    """A terminal of endless width: it gets characters and the few sequences that rich sends."""

    def isatty(self):
        return True

    def screen(self):
        """What is to be read on it now."""
        rows, row, column = [""], 0, 0
        for escape, move, character in re.findall(r"\x1b\[([0-9;?]*)([A-Za-z])|([^\x1b])", self.getvalue()):
            match move, character:
                case "A", _:
                    row -= int(escape)
                case "K", _:
                    rows[row] = ""
                case "", "\r":
                    column = 0
                case "", "\n":
                    row, column = row + 1, 0
                    rows += [""] * (row + 1 - len(rows))
                case "", _:
                    rows[row] = rows[row][:column].ljust(column) + character + rows[row][column + 1 :]
                    column += 1
        return [line for line in rows if line.strip()]


class Clock:
    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(train_screen, "time", clock)
    return clock


@pytest.fixture
def on_terminal(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    return Terminal()


def show(events, terminal=None, clock=None, seconds=0.0):
    with contextlib.redirect_stdout(terminal or sys.stdout), TrainScreen() as screen:
        for event in events:
            if clock:
                clock.now += seconds
            screen.show(event)


# --- without a terminal


def test_every_line_says_what_and_so_what(capsys):
    show([TEXT, TOKENS, YARDSTICKS, PLANNED])
    assert capsys.readouterr().out.splitlines() == [
        "Text: book.txt, 1,000 characters, 60 different.",
        "Tokens: 1,024 byte pairs, 2.50 characters each; 400 to learn from, 40 held out to be tested on.",
        "To beat, in bits per held-out character: chance 6.00, letter counts 4.80, 5-gram table 2.00, xz 2.50.",
        "Plan: 2,000,000 weights (4 layers, 192 wide, context 256); 744 steps of 16 x 256 = 4,096 tokens, 6.9 times"
        " through the text, about 4:20 min; float32, written-out attention, compiled, 2 threads on the CPU.",
    ]


def test_rows_that_are_computed_apart_are_told(capsys):
    show([dataclasses.replace(PLANNED, micro_batch_size=4)])
    assert "744 steps of 4 micro-batches x 4 rows x 256 = 4,096 tokens" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("ranks", "rows", "told"),
    [
        (2, 8, "2 processes x 8 rows x 256 = 4,096 tokens"),
        (2, 4, "2 processes x 2 micro-batches x 4 rows x 256 = 4,096 tokens"),
        (3, 6, "3 processes x 6 rows x 256 (of 16 rows) = 4,096 tokens"),
    ],
)
def test_how_a_step_is_cut_is_told_as_a_product(capsys, ranks, rows, told):
    show([dataclasses.replace(PLANNED, micro_batch_size=rows, ranks=ranks)])
    assert f"744 steps of {told}" in capsys.readouterr().out


def test_rows_for_which_the_memory_did_not_suffice_are_told(capsys):
    show([MicroBatchHalved(step=0, micro_batch_size=8, batch_size=16)])
    assert "The memory did not suffice: 8 rows at once instead; a step still has 16 rows" in capsys.readouterr().out


def test_a_later_last_step_is_told_with_the_schedule_that_holds(capsys):
    show([Extended(step=10, old_steps=20, new_steps=40, old_fraction=0.5, new_fraction=1.0)])
    said = capsys.readouterr().out
    assert "on to step 40 instead of 20, on the schedule of a run of 40 steps" in said
    assert "now 100% of its peak, and would have been 50%" in said


def test_the_memory_it_will_take_is_told_beside_the_time(capsys):
    show([dataclasses.replace(PLANNED, memory_bytes=1_230_000_000)])
    assert "6.9 times through the text, about 1.2 GB and 4:20 min; float32" in capsys.readouterr().out


def test_what_was_noticed_is_a_line_that_stays(capsys):
    show([step_done(1), Noticed(step=1, kind="loss spike", sentence="Loss spike at step 1.\x1b[2J")])
    assert capsys.readouterr().out.splitlines()[1] == "Loss spike at step 1.␛[2J"


def test_notes_on_the_text_are_told(capsys):
    show([dataclasses.replace(TEXT, documents=3, notes=("Left out as empty: a.txt.",))])
    assert capsys.readouterr().out.splitlines() == [
        "Text: book.txt, 3 documents, 1,000 characters, 60 different.",
        "Left out as empty: a.txt.",
    ]


def test_progress_has_step_loss_speed_and_time_left(capsys):
    show([step_done(1)])
    assert capsys.readouterr().out == "Step 1/744, epoch 0.0: train 3.21 bits; 11,000 tokens/s, 2:30 min left.\n"


def test_an_evaluation_is_a_line_with_its_sample(capsys):
    show([evaluated(74), Sampled(step=74, prompt="To ", text="be,\nor not")])
    assert capsys.readouterr().out == (
        "Step 74/744, epoch 0.7: train 2.200, held out 2.345 bits per character; 10,500 tokens/s, 2:00 min left."
        " It writes: To be, or not\n"
    )


def test_there_are_early_signs_of_life_and_then_the_evaluations(capsys):
    show(whole_run())
    lines = capsys.readouterr().out.splitlines()
    steps = [int(match[1]) for line in lines if (match := re.match(r"Step (\d+)/", line))]
    assert steps == [1, 2, 5, 10, 20, 50, *range(74, 741, 74)]


def test_a_resumed_run_gives_signs_of_life_too(capsys):
    resumed = Resumed(step=300, steps=744, path="x", variant="float32, fused attention, eager", out="runs/a", note="")
    show([resumed, step_done(301), step_done(302), step_done(303)])
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "Going on with runs/a after step 300 of 744; float32, fused attention, eager.",
        "Step 301/744, epoch 2.8",
        "Step 302/744, epoch 2.8",
    ]


def test_steps_that_a_damaged_checkpoint_costs_are_told(capsys):
    show([Resumed(step=300, steps=744, path="x", variant="v", out="r", steps_again=5)])
    assert "A later checkpoint is damaged or gone: 5 steps will be taken again." in capsys.readouterr().out


def test_on_another_machine_it_warns_of_the_last_digit(capsys):
    show([Resumed(step=1, steps=2, path="x", variant="v", out="r", note="torch is 2.14 and was 2.13")])
    assert "not be the same to the last digit: torch is 2.14 and was 2.13." in capsys.readouterr().out


def test_what_was_compiled_is_compiled_again(capsys):
    show([Resumed(step=1, steps=2, path="x", variant="float32, written-out attention, compiled", out="r")])
    assert capsys.readouterr().out.splitlines()[1].startswith("Compiling the step: seconds where it is cached")


def test_no_minute_passes_without_a_line(capsys, clock):
    show([evaluated(74)])
    with TrainScreen() as screen:
        screen.evaluated = evaluated(74)
        for step in range(100, 110):
            clock.now += PLAIN_SECONDS / 3
            screen.show(step_done(step))
    assert [line[:8] for line in capsys.readouterr().out.splitlines()] == ["Step 102", "Step 105", "Step 108"]


def test_a_skipped_step_is_told(capsys):
    show([step_done(1, skipped=True)])
    assert "was skipped: its loss or gradient was not finite" in capsys.readouterr().out


def test_a_new_plan_is_told_with_its_reason(capsys):
    show([Replanned(step=300, old_steps=744, new_steps=600, step_seconds=0.45, planned_step_seconds=0.35)])
    assert capsys.readouterr().out == (
        "Planned again: 600 steps fit instead of 744; one takes 0.450 s (0.350 s were expected).\n"
    )


def test_why_these_tokens_and_what_part_of_the_text_they_are_is_told(capsys):
    show([dataclasses.replace(TOKENS, reason="3 of 100 are parts", text_share=0.3, held_out_tokens=0)])
    said = capsys.readouterr().out
    assert "(since 3 of 100 are parts)" in said
    assert "none held out" in said
    assert "They are 30% of the text, taken evenly from all of it: about what a run can read." in said


def test_a_text_that_is_used_up_is_told(capsys):
    show([dataclasses.replace(PLANNED, used_up=True, epochs=31.7)])
    assert capsys.readouterr().out.endswith(
        "Your text is used up by then: read more than 32 times, it would be learned by heart. More text helps;"
        " --steps overrides.\n"
    )


def test_without_a_terminal_no_control_sequence_is_sent(capsys):
    show(whole_run())
    assert "\x1b" not in capsys.readouterr().out


def test_letters_that_are_the_best_table_are_told_once(capsys):
    show([dataclasses.replace(YARDSTICKS, best_ngram_name="letters", note="measured on 5%")])
    said = capsys.readouterr().out
    assert said.endswith("chance 6.00, letter counts 4.80, xz 2.50 (measured on 5%).\n")


def test_what_characters_cost_that_were_never_met_is_told(capsys):
    show([dataclasses.replace(YARDSTICKS, unseen=3, escape_bits=33.8)])
    assert capsys.readouterr().out.endswith("xz 2.50. 3 characters never met before: 34 bits each.\n")


# --- data is data


EVIL = "\x1b[31mred\x1b]0;title\x07 [bold]x[/bold] [/] \u202eabc \r"


def evil_events():
    yield dataclasses.replace(TEXT, name=EVIL, notes=(EVIL,))
    yield VariantTried(variant="v", admitted=False, reason=EVIL)
    yield PLANNED
    yield step_done(1)
    yield evaluated(1)
    yield Sampled(step=1, prompt=EVIL, text=EVIL)
    yield step_done(2)
    yield finished(sample=EVIL, copied=EVIL, out=EVIL)


def test_text_is_never_markup_and_never_a_control_sequence(capsys):
    show(evil_events())
    said = capsys.readouterr().out
    assert not set(said) & set("\x1b\x07\r\u202e")
    assert said.count("[bold]x[/bold] [/]") == 9
    assert "␛[31mred␛]0;title␇" in said


def test_nor_is_it_in_the_live_block(on_terminal, clock):
    show(evil_events(), on_terminal, clock, seconds=1.0)
    said = on_terminal.getvalue()
    assert "\x1b[31m" not in said
    assert "\x1b]0;" not in said
    assert "\u202e" not in said
    assert said.count("[bold]x[/bold] [/]") >= 7


# --- on a terminal


def test_about_a_dozen_lines_stay(on_terminal, clock):
    show(whole_run(), on_terminal, clock, seconds=0.3)
    lines = on_terminal.screen()
    assert [line.split(" ")[0] for line in lines] == [
        *("Text:", "Tokens:", "To", "Not", "Plan:"),
        *("On", "In", "It", "Copied?", "Saved", "More", "Next:"),
    ]


def test_progress_and_the_sample_are_alive_in_one_place(on_terminal, clock):
    pictures = []

    def events():
        for event in (PLANNED, step_done(1), evaluated(74), Sampled(step=74, prompt="", text="To be"), step_done(75)):
            yield event
            pictures.append(on_terminal.screen()[1:])

    show(events(), on_terminal, clock, seconds=1.0)
    assert pictures[1] == ["Step 1/744, epoch 0.0: train 3.21 bits; 11,000 tokens/s, 2:30 min left."]
    assert pictures[4] == [
        "Step 75/744, epoch 0.7: train 3.21 bits, held out 2.345 at step 74; 11,000 tokens/s, 2:30 min left.",
        "  To be",
    ]
    assert on_terminal.screen()[1:] == []


def test_what_is_being_compiled_is_told_while_it_is(on_terminal):
    with contextlib.redirect_stdout(on_terminal), TrainScreen() as screen:
        screen.show(CompileBegun(expected_seconds=30.0, pays_after_seconds=105.0))
        assert on_terminal.screen()[0].startswith("Compiling the step: about 30 s the first time")
        screen.show(step_done(1))
        assert len(on_terminal.screen()) == 1


def test_pictures_are_no_more_frequent_than_eyes_need(on_terminal, clock):
    show([step_done(step) for step in range(1, 101)], on_terminal, clock, seconds=ALIVE_SECONDS / 10)
    assert on_terminal.getvalue().count("Step ") <= 11


def test_no_thread_draws_while_steps_are_timed(on_terminal):
    before = threading.active_count()
    with contextlib.redirect_stdout(on_terminal), TrainScreen() as screen:
        screen.show(step_done(1))
        assert threading.active_count() == before


def interrupted():
    yield step_done(1)
    raise KeyboardInterrupt


def test_an_interruption_leaves_the_terminal_as_it_was(on_terminal):
    with pytest.raises(KeyboardInterrupt):
        show(interrupted(), on_terminal)
    said = on_terminal.getvalue()
    assert said.rfind("\x1b[?25h") > said.rfind("\x1b[?25l") >= 0  # the cursor was hidden, and is shown again


def test_a_terminal_that_cannot_go_back_gets_plain_lines(on_terminal, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    show(whole_run(), on_terminal)
    assert "\x1b" not in on_terminal.getvalue()
    assert "Step 740/744" in on_terminal.getvalue()


@pytest.mark.parametrize("no_color", ["1", None])
def test_there_are_no_colours_to_be_turned_off(on_terminal, monkeypatch, no_color):
    if no_color:
        monkeypatch.setenv("NO_COLOR", no_color)
    show(whole_run(), on_terminal)
    assert not re.search(r"\x1b\[[0-9;]*m", on_terminal.getvalue())


def test_whoever_stopped_reading_is_told_by_the_error_that_says_so():
    read, write = os.pipe()
    os.close(read)
    nobody = open(write, "w", buffering=1, encoding="utf-8")  # noqa: SIM115 - closing it fails too
    with pytest.raises(BrokenPipeError):
        show(whole_run(), nobody)
    with pytest.raises(BrokenPipeError):
        nobody.close()


def test_a_name_with_a_line_end_in_it_stays_on_its_line(capsys):
    show([dataclasses.replace(TEXT, name="a\nb.txt")])
    assert capsys.readouterr().out.startswith("Text: a b.txt")


def test_what_a_run_can_be_exported_to_is_said_with_its_plan(capsys):
    show([dataclasses.replace(PLANNED, reach="It can be exported to Hugging Face and GGUF (Qwen3).")])
    assert capsys.readouterr().out.splitlines()[1] == "It can be exported to Hugging Face and GGUF (Qwen3)."
