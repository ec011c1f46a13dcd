"""A conversation on a terminal: a line is asked for, an answer appears as it is written, a few commands are known.

Ctrl-C ends an answer, and what is written of it stays said; Ctrl-C once more, or Ctrl-D, leaves.

In: a conversation, what a person types.  Out: answers.  Used by: chat_run.py.  Read next: printable.py.
"""

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress

from pellucid.cli.arguments import text_argument
from pellucid.cli.heard_signals import signals_are_heard
from pellucid.cli.printable import PrintableStream
from pellucid.cli.quoting import one_line, shown
from pellucid.errors import UserError
from pellucid.generate import Continuation, Conversation, Turn
from pellucid.pages.quantities import counted
from pellucid.text import spans_of_ids

Talk = Conversation | Continuation

PROMPT, MORE = "> ", "… "

LONG = '"""'
"""Stands before and after a message of several lines."""

HELP = f"""
  /again          write the last answer anew
  /reset          forget what was said
  /system TEXT    tell the model something before everything; without TEXT, nothing
  /help           these lines
  {LONG}             begins and ends a message of several lines
  Ctrl-C          ends an answer; twice leaves, and so does Ctrl-D
""".strip("\n")

NAME_CELLS = 40
"""Of a terminal, for the name of a model."""


class Terminal:
    """A conversation on a terminal.

    Args:
        talk: The conversation.
        name: What to call the model.
        show_ids: Whether to show the ids that it is given.
    """

    def __init__(self, talk: Talk, *, name: str, show_ids: bool = False) -> None:
        self._talk, self._name, self._show_ids = talk, name, show_ids
        self._interrupted = False

    def run(self) -> int:
        """Talk until the person leaves.

        Returns:
            The exit code: 130 if it was by Ctrl-C.
        """
        with suppress(ImportError):  # Windows has none; there the console edits lines
            importlib.import_module("readline")  # only now: it writes to standard output on some terminals
        if hasattr(sys.stdin, "reconfigure"):
            sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
        context = f"{self._talk.model.config.context_length:,} tokens of context"
        name = one_line(self._name, NAME_CELLS)
        self._note(f"{name} · {context} · seed {self._talk.config.seed} · /help · Ctrl-D leaves")
        while (message := self._message()) is not None:
            try:
                self._do(message)
            except UserError as error:
                self._note(str(error))
        return 130 if self._interrupted else 0

    def _message(self) -> str | None:
        """What is typed next; None if the person leaves."""
        lines: list[str] = []
        while True:
            try:
                with signals_are_heard():
                    line = input(MORE if lines else PROMPT)
            except EOFError:
                print()
                self._interrupted = False
                return None
            except KeyboardInterrupt:
                print()
                if self._interrupted:
                    return None
                self._interrupted, lines = True, []
                self._note("Ctrl-C once more leaves.")
                continue
            self._interrupted = False
            lines.append(line)
            text = "\n".join(lines)
            if not text.lstrip().startswith(LONG):
                return text
            inner = text.strip().removeprefix(LONG)
            if inner.endswith(LONG):
                return inner.removesuffix(LONG).strip("\n")

    def _do(self, message: str) -> None:
        message = text_argument(message)
        if not message.strip():
            return
        command, _, rest = message.strip().partition(" ")
        match command:
            case "/help" | "/reset" | "/again" if rest.strip():
                self._note(f"{command} takes nothing after it; a space before it makes it a message.")
            case "/help":
                print(HELP)
            case "/reset":
                self._talk.reset()
                self._note("Forgotten.")
            case "/system":
                self._talk.set_system(rest.strip() or None)
                self._note("From now on the model is told this first." if rest.strip() else "It is told nothing first.")
            case "/again":
                question = self._talk.take_back()
                if question is None:
                    self._note("Nothing was asked yet.")
                else:
                    self._answer(question)
            case _ if command.startswith("/") and command[1:].isalpha():
                self._note(
                    f"There is no command {command}: /help tells which there are; a space before it makes it a message."
                )
            case _:
                self._answer(message)

    def _answer(self, message: str) -> None:
        turn = self._talk.ask(message)
        for sentence in [*told_before(turn), *(told_ids(turn) if self._show_ids else [])]:
            self._note(sentence)
        try:
            for text in written(turn):
                print(text, end="", flush=True)
        except KeyboardInterrupt:
            self._interrupted = True
        print()
        is_kept = self._talk.keep(turn)
        if self._interrupted:
            self._note("Ended by Ctrl-C; once more leaves.")
        elif not is_kept:
            self._note("The model's chat template cannot repeat this answer: it is forgotten, and so is the question.")
        elif self._talk.is_full(turn):
            self._note("The answer ends here because the context is full: /reset makes room.")
        elif turn.answer.finish_reason == "length":
            written_tokens = counted(len(turn.answer.token_ids), "token")
            self._note(f"The answer ends here after {written_tokens}: --max-tokens allows more.")
        print()

    def _note(self, sentence: str) -> None:
        """Something of ours: dim, where there are colours."""
        dim, plain = ("", "") if os.environ.get("NO_COLOR") else ("\x1b[2m", "\x1b[0m")
        print(f"{dim}{shown(sentence, isolate=True)}{plain}", flush=True)


def told_before(turn: Turn) -> list[str]:
    """What is to be said before an answer."""
    match turn.num_forgotten:
        case 0:
            return []
        case 1:
            return ["The context is full: the oldest question and its answer are forgotten."]
        case many:
            return [f"The context is full: the {many} oldest questions and their answers are forgotten."]


def told_ids(turn: Turn) -> list[str]:
    """The ids that the model is given, each with what it stands for."""
    ids: Sequence[int] = turn.answer.prompt_ids
    spans = spans_of_ids(turn.writing.tokenizer, ids)
    return [f"{len(ids):,} ids: " + " | ".join(f"{span.token_id} {span.shown}" for span in spans)]


def written(turn: Turn) -> Iterator[str]:
    """An answer as it is written, in whole graphemes, without white space before it; nothing in it acts."""
    screen, begun = PrintableStream(), False
    for _, chunk in turn.writing.whole_graphemes():
        chunk = chunk if begun else chunk.lstrip()
        begun = begun or bool(chunk)
        yield screen.push(chunk)
    yield screen.finish()
