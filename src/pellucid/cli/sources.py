"""Which text a verb is to read, and what its tokens shall be: flags that `train` and `prepare` share.

In: words of the command line.  Out: `text_of`, `sources_of`, `tokenizer_named`, `told`.  Used by: train_run.py,
prepare_run.py.  Read next: train_run.py.
"""

import os
from pathlib import Path
from typing import Protocol, runtime_checkable

from pellucid.data import (
    ChatSources,
    PreparedText,
    Sources,
    are_chats,
    builtin_corpus,
    is_prepared,
    open_chats,
    open_prepared_text,
    open_sources,
)
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


def text_of(flags: TextFlags, weights: str | None = None) -> Sources | PreparedText | ChatSources:
    """The text that flags name, prepared or not.

    Args:
        flags: Of any verb that reads a text or prepared folders.
        weights: In which proportions several prepared folders are mixed.

    Raises:
        UserError: for text beside prepared folders, or flags that are not for them.
    """
    paths = [Path(source) for source in flags.sources]
    if chats := [path for path in paths if are_chats(path)]:
        return _chats_of(flags, paths, chats)
    prepared = [path for path in paths if is_prepared(path)]
    if not prepared:
        if weights is not None:
            raise UserError(
                "prepared folders, for --weights to mix",
                came="text that is not prepared",
                remedy="prepare each part with pellucid prepare, or leave --weights out",
            )
        return sources_of(flags)
    if len(prepared) < len(paths):
        other = next(path for path in paths if path not in prepared)
        raise UserError(
            "prepared folders alone, or text alone",
            came=f"{prepared[0]}, which is prepared, beside {other}, which is not",
            remedy=f"prepare that too, with --tokenizer {prepared[0]}",
        )
    given = {
        "--encoding": flags.encoding,
        "--text-column": flags.text_column,
        "--drop-boilerplate": flags.drop_boilerplate or None,
        "--held-out": flags.held_out,
    }
    if wrong := [name for name, value in given.items() if value is not None]:
        raise UserError(
            f"{prepared[0]} as it was prepared", came=f"{wrong[0]} beside it", remedy="say it to pellucid prepare"
        )
    return open_prepared_text(prepared, weights)


def _chats_of(flags: TextFlags, paths: list[Path], chats: list[Path]) -> ChatSources:
    """The chats that flags name.

    Raises:
        UserError: for text beside them, or flags that are for text.
    """
    if len(chats) < len(paths):
        other = next(path for path in paths if path not in chats)
        raise UserError(
            "chats alone, or text alone", came=f"{chats[0]}, which are chats, beside {other}", remedy="leave one out"
        )
    given = {"--text-column": flags.text_column, "--drop-boilerplate": flags.drop_boilerplate or None}
    if wrong := [name for name, value in given.items() if value is not None]:
        raise UserError(f"chats as they are in {chats[0]}", came=f"{wrong[0]} beside them", remedy="leave it out")
    held_out = {} if flags.held_out is None else {"held_out_percent": flags.held_out}
    return open_chats(chats, encoding=flags.encoding, **held_out)


def sources_of(flags: TextFlags, on_progress: OnProgress = lambda characters, of: None) -> Sources:
    """The text that flags name, surveyed; Python's documentation if they name none.

    Args:
        flags: Of any verb that reads a text.
        on_progress: As in `Sources`.

    Raises:
        UserError: for a folder that is prepared already.
    """
    for path in map(Path, flags.sources):
        if is_prepared(path):
            raise UserError("text", came=f"{path}, which is prepared already", remedy="give the text it was made of")
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
