"""What a person sees of a run: about a dozen lines, one of them alive where the output is a terminal.

Text from files and models is printed as data: never as markup, never as control sequences.

In: events.  Out: lines.  Used by: train_run.py.  Read next: ../train/events.py.
"""

import math
import shlex
import sys
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from pellucid.cli.printable import printable
from pellucid.train import (
    CompileBegun,
    Evaluated,
    Event,
    Finished,
    Planned,
    Replanned,
    Sampled,
    StepDone,
    TextRead,
    TextTokenized,
    VariantTried,
    YardsticksMeasured,
)

SAMPLE_CHARACTERS = 150  # two lines of a terminal
PLAIN_STEPS = (1, 2, 5, 10, 20, 50)  # without a terminal: early signs of life, then the evaluations' lines


class TrainScreen:
    """Prints events; use it as a context manager."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self.live: Live | None = None
        self.evaluated: Evaluated | None = None
        self.sample = ""
        self.compiled_to_be = False

    def __enter__(self) -> "TrainScreen":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end_live()

    def say(self, text: str, style: str = "") -> None:
        """Print a line; what is in it is text, whatever it looks like."""
        self.console.print(Text(printable(text), style=style))

    def show(self, event: Event) -> None:
        """Print what this event has to say, if anything."""
        match event:
            case TextRead():
                self._text_read(event)
            case TextTokenized():
                unit = "characters" if event.kind == "characters" else "byte pairs" if event.kind == "bpe" else "tokens"
                self.say(
                    f"Tokens: {event.vocab_size:,} {unit}, {event.characters_per_token:.2f} characters each;"
                    f" {event.training_tokens:,} to learn from, {event.held_out_tokens:,} held out to be tested on."
                )
            case YardsticksMeasured():
                self.say(
                    "To beat, in bits per held-out character:"
                    f" chance {event.chance:.2f}, letter counts {event.letters:.2f},"
                    f" {event.best_ngram_name} table {event.best_ngram:.2f}, xz {event.xz:.2f}"
                    + (f" ({event.note})." if event.note else ".")
                )
            case CompileBegun():
                self.say(
                    f"Compiling the step: about {event.expected_seconds:.0f} s the first time, seconds when it is"
                    f" cached; it pays back in runs over {event.pays_after_seconds:.0f} s."
                )
            case VariantTried(admitted=False):
                self.say(f"Not used: {event.variant}, because {event.reason}.")
            case Planned():
                self._planned(event)
            case StepDone():
                self._step_done(event)
            case Evaluated():
                self.evaluated = event
            case Sampled():
                self._sampled(event)
            case Replanned():
                self.say(
                    f"Planned again: a step takes {event.step_seconds:.3f} s, not {event.planned_step_seconds:.3f} s,"
                    f" so {event.new_steps:,} steps instead of {event.old_steps:,}."
                )
            case Finished():
                self._finished(event)

    def _text_read(self, event: TextRead) -> None:
        documents = f", {event.documents:,} documents" if event.documents > 1 else ""
        self.say(
            f"Text: {event.name}{documents}, {event.characters:,} characters, {event.distinct_characters:,} different."
        )
        for note in event.notes:
            self.say(note)

    def _planned(self, event: Planned) -> None:
        model = event.model
        self.say(
            f"Plan: {event.parameters:,} weights ({model['num_layers']} layers, {model['d_model']} wide, context"
            f" {model['context_length']}); {event.steps:,} steps of {event.batch_size} x {model['context_length']} ="
            f" {event.tokens_per_step:,} tokens, {_times(event.epochs)} through the text, about"
            f" {_duration(event.steps * event.step_seconds)}; {event.variant}, {event.threads} threads on the"
            f" {event.device.upper()}."
        )

    def _step_done(self, event: StepDone) -> None:
        if self.console.is_terminal:
            if self.live is None:
                self.live = Live(console=self.console, refresh_per_second=4, transient=True)
                self.live.start()
            self.live.update(Text(printable(self._progress(event) + self._sample_line())))
        elif event.step in PLAIN_STEPS and self.evaluated is None:
            self.say(self._progress(event))

    def _progress(self, event: StepDone) -> str:
        line = (
            f"Step {event.step:,}/{event.steps:,}, epoch {event.epoch:.1f}: train {event.bits_per_character:.2f} bits"
        )
        if self.evaluated is not None:
            line += f", held out {self.evaluated.held_out:.3f} at step {self.evaluated.step:,}"
        line += f"; {event.tokens_per_second:,.0f} tokens/s, {_duration(event.seconds_left)} left."
        return line + (" This step was skipped: its loss or gradient was not finite." if event.skipped else "")

    def _sample_line(self) -> str:
        return f"\n  {self.sample}" if self.sample else ""

    def _sampled(self, event: Sampled) -> None:
        text = " ".join((event.prompt + event.text).split())
        self.sample = text if len(text) <= SAMPLE_CHARACTERS else text[:SAMPLE_CHARACTERS] + " …"
        if self.evaluated is None or self.console.is_terminal:
            return
        now = self.evaluated
        train = "" if now.train is None else f"train {now.train:.3f}, "
        self.say(
            f"Step {now.step:,}/{now.steps:,}, epoch {now.epoch:.1f}: {train}held out {now.held_out:.3f} bits per"
            f" character; {now.tokens_per_second:,.0f} tokens/s, {_duration(now.seconds_left)} left."
            f" It writes: {self.sample}"
        )

    def _finished(self, event: Finished) -> None:
        self._end_live()
        for line in closing_lines(event):
            self.say(line)
        sys.stdout.flush()

    def _end_live(self) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None


def closing_lines(event: Finished) -> list[str]:
    """What is said at the end of a run: how good, whether it copied, where it is, and what to do with it."""
    out = shlex.quote(event.out)
    lines = []
    if not event.completed:
        lines.append(f"Stopped at step {event.step:,} of {event.steps:,}; everything is saved.")
    lines.append(judgement(event))
    if event.sample:
        lines.append("It writes: " + " ".join(event.sample[: 2 * SAMPLE_CHARACTERS].split()))
        copied = len(event.copied)
        lines.append(
            f"Copied? The longest passage of a sample of {len(event.sample)} characters that stands in the text has"
            f" {copied}: {event.copied.strip()!r}."
        )
    lines.append(
        f"Saved in {out} after {_duration(event.seconds)}: model.safetensors (step {event.best_step:,}), config.json,"
        " tokenizer.json, metrics.jsonl, checkpoints."
    )
    if not event.completed:
        lines.append(f"Go on:    pellucid train --resume {out}")
    lines.append(f'Next:     pellucid generate {out} "Once upon a time"')
    return lines


def judgement(event: Finished) -> str:
    """An honest sentence about the held-out loss."""
    if not math.isfinite(event.held_out):
        return "The held-out text was never scored: the run was too short."
    error = 0.0 if event.standard_error is None else event.standard_error
    ngram, name = event.yardsticks["best_ngram"], event.yardsticks["best_ngram_name"]
    figure = (
        f"On text it never read: {event.held_out:.3f} bits per character"
        + (f" (± {error:.3f}; {event.held_out_odd:.3f} on the half that did not choose the step)" if error else "")
        + f", after {event.step:,} of {event.planned_steps:,} planned steps."
    )
    if event.held_out + error < ngram:
        verdict = f"Better than the best table of letter sequences ({name}, {ngram:.2f})"
        verdict += f" and than xz ({event.yardsticks['xz']:.2f})." if event.held_out < event.yardsticks["xz"] else "."
    elif event.held_out > ngram + error:
        verdict = f"A table of letter sequences does better ({name}, {ngram:.2f}): give it more minutes or more text."
    else:
        verdict = (
            f"About as good as a table of letter sequences ({name}, {ngram:.2f}): more minutes or text would help."
        )
    if event.best_step < event.step and event.train is not None:
        verdict += f" It was best at step {event.best_step:,}, which is what was kept; later it learned by heart."
    return f"{figure} {verdict}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    return f"{minutes}:{rest:02d} min" if minutes else f"{rest} s"


def _times(epochs: float) -> str:
    return f"{epochs:.1f} times" if epochs >= 1 else f"{epochs:.0%} of the way"
