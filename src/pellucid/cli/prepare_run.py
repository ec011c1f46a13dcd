"""Wires `pellucid prepare` together: the text, the tokenizer, the processes, the lines.

In: `PrepareFlags`.  Out: an exit code.  Used by: prepare.py.  Read next: sources.py.
"""

import os
import shlex
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pellucid.cli.prepare_flags import PrepareFlags
from pellucid.cli.printable import printable_json
from pellucid.cli.sources import sources_of, tokenizer_named, told
from pellucid.cli.train_screen import TrainScreen
from pellucid.convert.any_tokenizer import load_any_tokenizer
from pellucid.data import PreparedFolder, Progress, Sources, is_prepared, prepare_folder
from pellucid.data.prepare_folder import unfinished
from pellucid.errors import UserError
from pellucid.pages.quantities import counted, duration
from pellucid.text import TextTokenizer
from pellucid.train import Request
from pellucid.train.material import make_tokenizer
from pellucid.training_config import TrainingConfig

LONG_RUN_MINUTES = 24 * 60.0  # whoever prepares a text means to train for long: the vocabulary is chosen for that
CHARACTERS_A_PROCESS = 4_000_000  # a process takes half a second to begin, in which another encodes half of this
ALIVE_SECONDS, PLAIN_SECONDS = 0.25, 10.0  # between two signs of life, on a terminal and elsewhere
UNITS = {"characters": "characters", "bpe": "byte pairs"}


def carry_out(flags: PrepareFlags) -> int:
    """Make the folder, or go on making it."""
    if flags.out is None:
        raise UserError("--out DIR, the folder to make", came="none", remedy="say where, as in --out prepared/books")
    if flags.processes is not None and flags.processes < 1:
        raise UserError("processes of 1 or more", came=str(flags.processes), remedy="leave it out for all cores")
    out = Path(flags.out)
    tokenizer = tokenizer_named(flags.tokenizer)
    with TrainScreen() as screen, _said_if_stopped(screen, out):
        lines = PrepareLines(screen, quiet=flags.json)
        there = is_prepared(out)
        sources = sources_of(flags, lines.reading)
        lines.text(told(flags.sources), sources)
        lines.begun(out, there)
        request = Request(
            sources=sources,
            name="",
            out=out,
            training=TrainingConfig(minutes=LONG_RUN_MINUTES),
            tokenizer=tokenizer,
            vocab_size=flags.vocab_size,
        )
        folder = prepare_folder(
            sources,
            out,
            lambda text: lines.vocabulary(*make_tokenizer(text, request.recipe())),
            names=flags.sources or (told(()),),
            asked=_asked(tokenizer, flags.vocab_size),
            processes=flags.processes or _processes(sources.characters),
            on_progress=lines.encoding,
        )
        lines.finished(folder, there)
    if flags.json:
        print(printable_json(asdict(folder.card)))
    return 0


class PrepareLines:
    """What a person sees.

    Args:
        screen: Where.
        quiet: Whether they see nothing.
    """

    def __init__(self, screen: TrainScreen, *, quiet: bool) -> None:
        self._screen, self._quiet = screen, quiet
        self._shown = time.monotonic()
        self._pace = ALIVE_SECONDS if screen.is_alive else PLAIN_SECONDS
        self._resumed = False

    def say(self, text: str) -> None:
        """A line that stays."""
        if not self._quiet:
            self._screen.say(text)

    def for_now(self, text: str) -> None:
        """A sign of life, if it is time for one."""
        if not self._quiet and time.monotonic() - self._shown >= self._pace:
            self._shown = time.monotonic()
            self._screen.show_for_now(text)

    def reading(self, characters: int, of: int | None) -> None:
        """Text goes by, for the first time or to learn a vocabulary."""
        if of is None:
            self.for_now(f"Reading the text: {characters:,} characters so far.")
        elif not self._resumed:
            self.for_now(f"Reading it once more: {characters / of:.0%}.")

    def text(self, name: str, sources: Sources) -> None:
        """The text was read."""
        self.say(
            f"Text: {name}, {counted(len(sources.documents), 'document')}, {counted(sources.characters, 'character')}."
        )
        for note in sources.notes:
            self.say(note)

    def begun(self, out: Path, there: bool) -> None:
        """What is known of the folder before anything is made."""
        work = unfinished(out)
        if not there and (work / "progress.json").exists():
            self._resumed = True
            self.say(f"Going on with {work.name}, where it was stopped.")

    def vocabulary(self, tokenizer: TextTokenizer, reason: str) -> tuple[TextTokenizer, str]:
        """A tokenizer was made."""
        since = f" (since {reason})" if reason else ""
        self.say(f"Vocabulary: {tokenizer.vocab_size:,} {UNITS.get(tokenizer.kind, 'tokens')}{since}.")
        return tokenizer, reason

    def encoding(self, progress: Progress) -> None:
        """Some text was encoded."""
        self._resumed = True  # from here on these lines say more than `reading`
        rate = (progress.characters - progress.resumed_at) / max(progress.seconds, 1e-3)
        self.for_now(
            f"Encoding: {progress.characters / progress.of:.0%}, {rate / 1e6:.1f} million characters/s,"
            f" {duration(progress.seconds_left)} left."
        )

    def finished(self, folder: PreparedFolder, there: bool) -> None:
        """The folder is whole."""
        card = folder.card
        self.say(f"{'It was there already' if there else 'Made'}: {folder.path}. Its card:")
        for sentence in card.text.sentences:
            self.say(f"  {sentence}")
        held_out = f"{card.held_out_tokens:,}" if card.held_out_tokens else "none"
        self.say(
            f"  Tokens: {card.vocab_size:,} {UNITS.get(card.tokenizer_kind, 'tokens')},"
            f" {card.characters_per_token:.2f} characters each; {card.training_tokens:,} to learn from, {held_out} held"
            " out to be tested on."
        )
        self.say(f"Next:  pellucid train {shlex.quote(str(folder.path))}")


@contextmanager
def _said_if_stopped(screen: TrainScreen, out: Path) -> Generator[None]:
    """Whoever stops it is told how it goes on."""
    try:
        yield
    except Exception:
        raise
    except BaseException:  # Ctrl-C, SIGTERM
        if unfinished(out).exists():
            screen.say("Stopped. What is done is kept: the same command goes on from there.")
        raise


def _asked(tokenizer: str | None, vocab_size: int | None) -> dict[str, Any]:
    """What was asked for, by which a result is known again."""
    if tokenizer not in (None, "characters", "bpe"):
        tokenizer = load_any_tokenizer(tokenizer).fingerprint
    return {"tokenizer": tokenizer, "vocab_size": vocab_size}


def _processes(characters: int) -> int:
    """One for each core that this process may use, as far as there is work for them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, characters // CHARACTERS_A_PROCESS))
