"""Which text a verb is to read, and what its tokens shall be: flags that `train` and `prepare` share.

In: words of the command line.  Out: `sources_of`, `tokenizer_named`, `told`.  Used by: train_run.py, prepare_run.py.
Read next: train_run.py.
"""

import os
from typing import Protocol, runtime_checkable

from pellucid.data import Sources, builtin_corpus, open_sources
from pellucid.data.sources import OnProgress
from pellucid.errors import UserError

TOKENIZERS = {"char": "characters", "characters": "characters", "bpe": "bpe"}
NAMED = 4  # sources; a pattern of the shell may give thousands


@runtime_checkable
class TextFlags(Protocol):
    """The flags that say which text."""

    sources: tuple[str, ...]
    encoding: str | None
    text_column: str | None
    drop_boilerplate: bool
    held_out: int | None


def sources_of(flags: TextFlags, on_progress: OnProgress = lambda characters, of: None) -> Sources:
    """The text that flags name, surveyed; Python's documentation if they name none.

    Args:
        flags: Of any verb that reads a text.
        on_progress: As in `Sources`.
    """
    held_out = {} if flags.held_out is None else {"held_out_percent": flags.held_out}
    if not flags.sources:
        return builtin_corpus(**held_out)
    return open_sources(
        flags.sources,
        encoding=flags.encoding,
        text_column=flags.text_column,
        drop_boilerplate=flags.drop_boilerplate,
        on_progress=on_progress,
        **held_out,
    )


def tokenizer_named(asked: str | None) -> str | None:
    """The tokenizer as a request names it.

    Raises:
        UserError: if it is neither a kind nor a path.
    """
    if asked is None or asked in TOKENIZERS:
        return TOKENIZERS.get(asked or "")
    if not os.path.exists(asked):
        raise UserError(
            "--tokenizer char, bpe, or the path of a tokenizer.json",
            came=f"'{asked}', where there is nothing",
            remedy="choose one of the two, or check the path",
        )
    return asked


def told(sources: tuple[str, ...]) -> str:
    """What the text is called on the screen.

    Example:
        >>> told(("a.txt", "b.txt")), told(())
        ('a.txt, b.txt', "Python's documentation")
    """
    more = f" and {len(sources) - NAMED:,} more" if len(sources) > NAMED else ""
    return ", ".join(sources[:NAMED]) + more or "Python's documentation"
