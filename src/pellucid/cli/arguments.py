"""A verb's flags: a dataclass in, its values out; a mistake becomes one sentence.

The docstring under each field is its help. Names and types are the dataclass's; nothing is said twice.

In: a dataclass and words.  Out: an instance of it.  Used by: every verb.  Read next: values.py.
"""

import contextlib
import io
import itertools
import os
import re
import sys
from collections.abc import Sequence
from typing import TypeVar

import tyro

from pellucid.cli.values import VALUES
from pellucid.errors import UserError

Arguments = TypeVar("Arguments")
ENDS = ("Perhaps you meant", "Arguments similar to", "Argument helptext", "For full helptext")
"""How lines of the parser begin after which it says no more of what was wrong."""


def parse(kind: type[Arguments], words: Sequence[str], verb: str) -> Arguments:
    """The flags of `pellucid verb`.

    Args:
        kind: A dataclass; its docstring describes the verb, those under its fields describe the flags.
        words: What came after the verb.
        verb: Its name.

    Raises:
        UserError: for an unknown flag, with the nearest one that is known, and for a value of the wrong kind.
        SystemExit: after --help.
    """
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(
                kind,
                prog=f"pellucid {verb}",
                args=words,
                registry=VALUES,
                config=(
                    tyro.conf.FlagCreatePairsOff,
                    tyro.conf.PositionalMetavarFromFieldName,
                    tyro.conf.UseAppendAction,
                    tyro.conf.HelptextFromCommentsOff,
                ),
            )
    except SystemExit as error:
        if error.code in (0, None):
            raise
        expected, came, remedy = _in_words(said.getvalue(), verb)
        raise UserError(expected, came=came, remedy=remedy) from None


def text_argument(word: str) -> str:
    """A word from the command line as text: its bytes are UTF-8 whatever the locale says.

    Raises:
        UserError: if they are not.
    """
    try:
        return os.fsencode(word).decode("utf-8") if any("\udc80" <= c <= "\udcff" for c in word) else word
    except UnicodeDecodeError as error:
        raise UserError(
            "a prompt in UTF-8", came=f"other bytes ({error})", remedy="check the terminal's encoding"
        ) from error


def text_from_stdin() -> str:
    """All of standard input, which is UTF-8; a last newline, which `echo` adds, is left out.

    Raises:
        UserError: if it is not UTF-8.
    """
    if sys.stdin is None:
        raise UserError("text on standard input", came="none: it is closed", remedy="pipe the text in, or name a file")
    try:
        return sys.stdin.buffer.read().decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        came = f"the byte 0x{error.object[error.start]:02X} at place {error.start:,}"
        raise UserError("UTF-8 on standard input", came=came, remedy="convert it, say with iconv") from error


def _in_words(box: str, verb: str) -> tuple[str, str, str]:
    """What was expected, what came and what to do, out of the parser's framed message."""
    lines = [re.sub(r"^[│|]\s*|\s*[│|]$", "", line).strip() for line in box.splitlines()]
    if not re.search(r"\w", "".join(lines[1:2])):  # drawn without a frame: a title, and a line under it
        lines = lines[2:]
    lines = [line for line in lines if re.search(r"\w", line) and not re.match(r"[╭╰]", line)]
    said = " ".join(itertools.takewhile(lambda line: not line.startswith(ENDS), lines))
    if ours := re.search(r"Expected (.+?), but got (.+): (.+?)\.", said):  # a config refused a value in a sentence
        return ours[1], ours[2], ours[3]
    remedy = f"see pellucid {verb} --help"
    if ours := re.search(r"parsing (\S+): expected (.+), but got (.+)", said):  # values.py refused a word
        return f"{ours[1]} to be {ours[2]}", ours[3], remedy
    if missing := re.search(r"Missing value for argument '(.+?)'", said):
        return f"a value after {missing[1].split('/')[0]}", "none", remedy
    suggests = any(line.startswith(ENDS[:2]) for line in lines)
    names = [name[0] for line in lines if suggests and (name := re.match(r"--[\w.-]+", line))]
    if names:
        remedy = f"perhaps you meant {' or '.join(names[:3])}"
    said = said.rstrip(".:")
    if missing := re.match(r"Missing from .+?: (-*\w[\w-]*)", said):
        return f"{missing[1]} after pellucid {verb}", "nothing", remedy
    unknown = re.sub(r"^Unrecognized options: ", "", said)
    return f"what pellucid {verb} knows", unknown[:1].lower() + unknown[1:], remedy
