"""What a person sees of a run: about a dozen lines, one of them alive where the output is a terminal.

Text from files and models is printed as data: never as markup, never as control sequences.

In: events.  Out: lines.  Used by: train_run.py.  Read next: train_closing.py.
"""

import time
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from pellucid.cli.printable import printable
from pellucid.cli.quoting import one_line, rows, shown
from pellucid.cli.train_closing import closing_lines
from pellucid.data.split import TENTHS
from pellucid.model_config import is_own_part
from pellucid.pages.quantities import counted, duration, size
from pellucid.train import (
    CompileBegun,
    CoolingDown,
    Evaluated,
    Event,
    Extended,
    Finished,
    MicroBatchHalved,
    Noticed,
    Planned,
    Replanned,
    Resumed,
    Sampled,
    StartOpened,
    StartScored,
    StepDone,
    TextRead,
    TextTokenized,
    VariantTried,
    YardsticksMeasured,
)

NAME_CELLS = 200  # of a text, with line ends in it as the file system allows
SAMPLE_CELLS = 150  # two lines of a terminal
PLAIN_STEPS = (1, 2, 5, 10, 20, 50)  # without a terminal: early signs of life, then the evaluations' lines
PLAIN_SECONDS = 60.0  # and never longer than this without a line
ALIVE_SECONDS = 0.25  # between two pictures of the live block: fast enough to be alive, and no thread draws it
UNITS = {"characters": "characters", "bpe": "byte pairs"}


class TrainConsole(Console):
    """Where the lines go. Whoever read them may leave: the command line has an exit code for that."""

    def on_broken_pipe(self) -> None:
        """Let the error go on its way instead of ending the process here."""
        raise


class TrainScreen:
    """Prints events; use it as a context manager."""

    def __init__(self) -> None:
        self.console = TrainConsole(highlight=False, soft_wrap=True)
        self.is_alive = self.console.is_terminal and not self.console.is_dumb_terminal
        self.live: Live | None = None
        self.drawn = self.spoken = time.monotonic()
        self.steps_seen = 0
        self.evaluated: Evaluated | None = None
        self.sample = ""
        self.are_chats = False

    def __enter__(self) -> "TrainScreen":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end_live()

    def say(self, text: str) -> None:
        """Print a line that stays; what is in it is text, whatever it looks like."""
        self.spoken = time.monotonic()
        self.console.print(Text(shown(text, isolate=self.console.is_terminal)))

    def show_for_now(self, text: str) -> None:
        """Show text in the live block until other text comes; without a terminal it is a line like any other."""
        if not self.is_alive:
            self.say(text)
            return
        if self.live is None:
            self.live = Live(console=self.console, auto_refresh=False, transient=True)
            self.live.start()
        self.drawn = time.monotonic()
        self.live.update(Text("\n".join(rows(text, self.console.width))), refresh=True)

    def stopping(self) -> None:
        """A signal has asked the run to stop, and the step is done."""
        self.say("Stopping: saving, then one last look at the held-out text. Once more ends at once.")

    def show(self, event: Event) -> None:
        """Print what this event has to say, if anything."""
        match event:
            case TextRead():
                self._text_read(event)
            case StartOpened():
                self.say(_opened(event))
            case TextTokenized():
                self._tokenized(event)
            case YardsticksMeasured():
                self._yardsticks(event)
            case CompileBegun():
                self.show_for_now(
                    f"Compiling the step: about {event.expected_seconds:.0f} s the first time, seconds when it is"
                    f" cached; it pays back in runs over {event.pays_after_seconds:.0f} s."
                )
            case VariantTried(admitted=False):
                self.say(f"Not used: {event.variant}, because {event.reason}.")
            case Planned():
                self._planned(event)
            case StartScored():
                error = "" if event.standard_error is None else f" ± {event.standard_error:.3f}"
                self.say(f"Before training, the model held out: {event.held_out:.3f}{error} bits per character.")
            case Resumed():
                self._resumed(event)
            case StepDone():
                self._step_done(event)
            case Evaluated():
                self.evaluated = event
            case Noticed():
                self.say(event.sentence)
            case Sampled():
                self._sampled(event)
            case Replanned() | MicroBatchHalved() | Extended() | CoolingDown():
                self.say(_change(event))
            case Finished():
                self.end_live()
                for line in closing_lines(event):
                    self.say(line)

    def _text_read(self, event: TextRead) -> None:
        self.are_chats = event.are_chats
        word = "conversation" if event.are_chats else "document"
        documents = f", {counted(event.documents, word)}" if event.documents > 1 else ""
        self.say(
            f"Text: {one_line(event.name, NAME_CELLS)}{documents}, {counted(event.characters, 'character')},"
            f" {event.distinct_characters:,} different."
        )
        for note in event.notes:
            self.say(note)

    def _tokenized(self, event: TextTokenized) -> None:
        held_out = f"{event.held_out_tokens:,}" if event.held_out_tokens else "none"
        answers = "" if event.scored_tokens is None else f" ({event.scored_tokens:,} of them in answers)"
        since = f" (since {event.reason})" if event.reason else ""
        self.say(
            f"Tokens: {event.vocab_size:,} {UNITS.get(event.kind, 'tokens')}{since},"
            f" {event.characters_per_token:.2f} characters each; {event.training_tokens:,} to learn from{answers},"
            f" {held_out} held out to be tested on."
        )
        if event.text_share < 1:
            self.say(
                f"They are {event.text_share:.0%} of the text, taken evenly from all of it: about what a run can read."
            )

    def _yardsticks(self, event: YardsticksMeasured) -> None:
        ngram = "" if event.best_ngram_name == "letters" else f" {event.best_ngram_name} table {event.best_ngram:.2f},"
        self.say(
            "To beat, in bits per held-out character:"
            f" chance {event.chance:.2f}, letter counts {event.letters:.2f},{ngram} xz {event.xz:.2f}"
            + (f" ({event.note})." if event.note else ".")
            + (
                f" {counted(event.unseen, 'character')} never met before: {event.escape_bits:.0f} bits each."
                if event.unseen
                else ""
            )
        )

    def _planned(self, event: Planned) -> None:
        model, rows = event.model, event.micro_batch_size
        row_length = event.row_length or model["context_length"]
        micro_batches = -(-event.batch_size // (event.ranks * rows))
        parts = [f"{event.ranks} processes"] if event.ranks > 1 else []
        parts += [f"{micro_batches} micro-batches"] if micro_batches > 1 else []
        parts += [counted(rows, "row") if parts else f"{rows}"]
        product = f"{' x '.join(parts)} x {row_length}"
        exact = event.ranks * micro_batches * rows == event.batch_size
        equals = "=" if exact else f"(of {event.batch_size} rows) ="
        seconds = duration(max(1.0, event.steps * event.step_seconds))
        costs = f"about {size(event.memory_bytes)} and {seconds}" if event.memory_bytes else f"about {seconds}"
        trained = event.trained_parameters
        share = "" if trained in (None, event.parameters) else f", of which {trained:,} are trained"
        layers, steps = counted(model["num_layers"], "layer"), counted(event.steps, "step")
        self.say(
            f"Plan: {event.parameters:,} weights{share} ({layers}, {model['d_model']} wide, context"
            f" {row_length}); {steps} of {product} {equals}"
            f" {event.tokens_per_step:,} tokens, {_times(event.epochs)} through the text, {costs}; {event.variant},"
            f" {counted(event.threads, 'thread')} on the {event.device.upper()}."
        )
        if own := [str(part).partition("@")[0] for part in model.values() if is_own_part(part)]:
            self.say(f"Of your own: {', '.join(own)}, kept in own_parts/. No other runtime has it: no export.")
        elif event.reach:
            self.say(event.reach)
        if len(event.epochs_of_parts) > 1:
            self.say(f"Of the parts, in their order: {', '.join(map(_times, event.epochs_of_parts))} through each.")
        if event.packed_documents > TENTHS:
            self.say("Rows run across documents, which then see each other; --mask-documents keeps them apart.")
        if event.used_up:
            self.say(
                f"Your text is used up by then: read more than {event.epochs:.0f} times, it would be learned by heart."
                " More text helps; --steps overrides."
            )

    def _resumed(self, event: Resumed) -> None:
        self.say(f"Going on with {event.out} after step {event.step:,} of {event.steps:,}; {event.variant}.")
        if event.steps_again:
            self.say(
                f"A later checkpoint is damaged or gone: {counted(event.steps_again, 'step')} will be taken again."
            )
        if event.note:
            self.say(f"The rest will not be the same to the last digit: {event.note}.")
        if event.variant.endswith("compiled"):
            self.show_for_now("Compiling the step: seconds where it is cached, or about half a minute.")

    def _step_done(self, event: StepDone) -> None:
        self.steps_seen += 1
        now = time.monotonic()
        if self.is_alive:
            if self.steps_seen == 1 or now - self.drawn >= ALIVE_SECONDS:
                self.show_for_now(self._progress(event) + (f"\n  {self.sample}" if self.sample else ""))
        elif now - self.spoken >= PLAIN_SECONDS or (self.steps_seen in PLAIN_STEPS and self.evaluated is None):
            self.say(self._progress(event))

    def _progress(self, event: StepDone) -> str:
        train = "no loss yet" if event.train is None else f"train {event.train:.2f} bits"
        line = f"Step {event.step:,}/{event.steps:,}, epoch {event.epoch:.1f}: {train}"
        if self.evaluated is not None and self.evaluated.held_out is not None:
            line += f", held out {self.evaluated.held_out:.3f} at step {self.evaluated.step:,}"
        line += f"; {event.tokens_per_second:,.0f} tokens/s, {duration(event.seconds_left)} left."
        return line + (" This step was skipped: its loss or gradient was not finite." if event.skipped else "")

    def _sampled(self, event: Sampled) -> None:
        self.sample = one_line(event.prompt + (" → " if self.are_chats else "") + event.text, SAMPLE_CELLS)
        if self.evaluated is None or self.is_alive:
            return
        now = self.evaluated
        figures = [("train", now.train), ("held out", now.held_out)]
        bits = ", ".join(f"{side} {figure:.3f}" for side, figure in figures if figure is not None)
        self.say(
            f"Step {now.step:,}/{now.steps:,}, epoch {now.epoch:.1f}: {bits} bits per"
            f" character; {now.tokens_per_second:,.0f} tokens/s, {duration(now.seconds_left)} left."
            f" It writes: {self.sample}"
        )

    def end_live(self) -> None:
        """Take the live block away; the next one begins anew."""
        if self.live is not None:
            self.live.stop()
            self.live = None


def _opened(event: StartOpened) -> str:
    """The model that the run begins with."""
    new = f", among them new {', '.join(map(printable, event.new_tokens))}" if event.new_tokens else ""
    return (
        f"From: {one_line(event.name, NAME_CELLS)}, {event.parameters:,} weights, with its own"
        f" {event.vocab_size:,} tokens{new}; it can read {event.context_length:,} at once."
    )


def _change(event: Replanned | MicroBatchHalved | Extended | CoolingDown) -> str:
    """What is no longer as it was planned."""
    match event:
        case Replanned():
            return (
                f"Planned again: {event.new_steps:,} steps fit instead of {event.old_steps:,}; one takes"
                f" {event.step_seconds:.3f} s ({event.planned_step_seconds:.3f} s were expected)."
            )
        case MicroBatchHalved():
            where = f"At step {event.step:,} the memory" if event.step else "The memory"
            return (
                f"{where} did not suffice: {counted(event.micro_batch_size, 'row')} at once instead; a step still"
                f" has {counted(event.batch_size, 'row')}, and its numbers are the same."
            )
        case Extended():
            return (
                f"It goes on to step {event.new_steps:,} instead of {event.old_steps:,}, on the schedule of a run"
                f" of {event.new_steps:,} steps: the learning rate is now {event.new_fraction:.0%} of its peak, and"
                f" would have been {event.old_fraction:.0%}."
            )
        case CoolingDown():
            return (
                f"Saved at step {event.step:,}. Cooling down for {duration(event.seconds)}: the learning rate falls"
                " to its end, which makes the model better. Ctrl-C again ends it here."
            )


def _times(epochs: float) -> str:
    return f"{epochs:.1f} times" if epochs >= 1 else f"{epochs:.0%} of the way"
