"""`pellucid VERB …`: finds the verb's file, runs it, and turns whatever happens into a line and an exit code.

Only the chosen verb is imported, so that `pellucid --help` needs neither torch nor the flag parser. A verb is a file of
this folder with a function `main(arguments) -> int | None`.

    0  done          2  a mistake of the user's: one sentence says what to do
    1  a mistake of ours: one sentence, and the traceback with --debug
    130  Ctrl-C      143  SIGTERM      141  whoever read the output has gone (as `head` does)

In: words from a terminal.  Out: an exit code.  Used by: the `pellucid` command.  Read next: generate.py.
"""

import errno
import importlib
import os
import signal
import sys
import traceback
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pellucid
from pellucid.cli.printable import printable
from pellucid.cli.process import settle
from pellucid.errors import PellucidError, UserError

VERBS: dict[str, dict[str, str]] = {
    "make a model": {
        "train": "learn from files or folders of text, or from Python's own docs",
        "prepare": "turn much text into token files, once, for many runs",
        "tokens": "show how a text is cut into tokens",
    },
    "use it": {
        "generate": "let a model go on from a prompt",
        "chat": "talk with a model",
        "serve": "answer over HTTP, as the OpenAI API does",
    },
    "understand it": {
        "look": "see attention, layer by layer, and what the model was about to say",
        "report": "write a run's page: how good it is, what it wrote, how it learned",
        "evaluate": "score a text in bits per character, against yardsticks",
        "compare": "set runs side by side",
        "learn": "climb the ladder from nothing to a Transformer",
        "check": "check your own version of a part",
    },
    "hand it on": {
        "export": "write a Hugging Face or GGUF model, and prove it equal",
        "import": "read one",
    },
    "the machine": {
        "doctor": "what this machine has, and whether it computes right",
        "bench": "how fast it trains, and how fast it writes",
    },
}
"""What each verb is for, in the order of the help; those whose file is missing are left out."""

FILES = {"import": "import_model"}
"""Verbs whose file has another name, because the verb is a word of Python's."""

DEBUG = "--debug"


class Terminated(BaseException):
    """SIGTERM arrived: unwinds as Ctrl-C does, so that nothing is left half-made."""


def run(arguments: list[str] | None = None) -> int:
    """Run the command line; the entry point of `pellucid`.

    Args:
        arguments: The words after `pellucid`. Default: those of this process.

    Returns:
        The exit code.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    end_of_flags = words.index("--") if "--" in words else len(words)
    debug = DEBUG in words[:end_of_flags]
    words = [word for place, word in enumerate(words) if word != DEBUG or place >= end_of_flags]
    _speak_utf8()
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        code = _run_verb(words)
        sys.stdout.flush()
    except BaseException as error:
        code = _explain(error, debug)
    finally:
        signal.signal(signal.SIGTERM, before)
    return code


def _run_verb(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(help_text())
        return 0
    if words[0] in ("-V", "--version"):
        print(f"pellucid {pellucid.__version__}")
        return 0
    verb, *rest = words
    if verb not in existing_verbs():
        raise UserError(
            "a verb that pellucid knows", came=f"'{verb}'", remedy=_suggestion(verb) or "see pellucid --help"
        )
    settle(os.environ)
    module: Any = importlib.import_module(f"pellucid.cli.{FILES.get(verb, verb)}")
    return int(module.main(rest) or 0)


def existing_verbs() -> list[str]:
    """The verbs whose file is here, in the order of the help."""
    here = Path(__file__).parent
    verbs = [verb for group in VERBS.values() for verb in group]
    return [verb for verb in verbs if (here / f"{FILES.get(verb, verb)}.py").exists()]


def help_text() -> str:
    """What `pellucid --help` prints."""
    existing = existing_verbs()
    lines = ["pellucid: Transformer language models you can see through", "", "usage: pellucid VERB …"]
    for group, verbs in VERBS.items():
        shown = [f"  {verb:<10}{purpose}" for verb, purpose in verbs.items() if verb in existing]
        lines += ["", group, *shown] if shown else []
    return "\n".join([*lines, "", "pellucid VERB --help tells more; --debug shows where an error came from."])


def _suggestion(verb: str) -> str | None:
    close = get_close_matches(verb, existing_verbs(), n=1, cutoff=0.5)  # 0.5: "gen" still finds generate
    return f"perhaps you meant pellucid {close[0]}" if close else None


def _speak_utf8() -> None:
    """Text goes out as UTF-8 whatever the locale says, as it came in; what cannot be encoded is written out."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # whoever started us has closed it
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (as long as the process)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _terminate(_number: int, _frame: object) -> None:
    raise Terminated


def _explain(error: BaseException, debug: bool) -> int:
    """One line on stderr, and the exit code."""
    if isinstance(error, SystemExit):  # the flag parser has already spoken
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains once more on leaving
        return 128 + 13  # SIGPIPE's number, as shells report it
    if debug:
        traceback.print_exception(error)
    if own := sys.modules.get("pellucid.own_parts"):  # somebody's own code may have failed, and not ours
        error = own.blamed(error) or error
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        error = UserError("room to write", came="none left on the device", remedy="make room, and run it again")
    match error:
        case KeyboardInterrupt():
            if os.environ.get("LOCAL_RANK", "0") == "0":
                print("\nInterrupted.", file=sys.stderr)
            return 130
        case Terminated():
            return 143
        case UserError():
            print(printable(str(error)), file=sys.stderr)
            return 2
        case PellucidError():
            print(printable(str(error)), file=sys.stderr)
            return 1
    what = printable(" ".join(f"{type(error).__name__}: {error}".split()))
    where = "" if debug else " Run the same command with --debug to see where."
    print(f"Something in pellucid went wrong, {what}.{where}", file=sys.stderr)
    return 1
