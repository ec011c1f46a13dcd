"""`pellucid tokens FILE`: shows how a text is cut into tokens.

On a terminal each token has a colour of its own beside its neighbours'; elsewhere a bar stands between them. Spaces,
line ends and halves of characters are visible, and nothing in the text can act on the terminal (text/cutting.py).

In: flags, a text.  Out: its tokens.  Used by: main.  Read next: ../text/cutting.py.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle

import tyro
from rich.console import Console
from rich.text import Text

from pellucid.cli.arguments import parse, text_from_stdin
from pellucid.cli.printable import printable_json
from pellucid.cli.values import Text as TextValue
from pellucid.cli.values import WholeNumber
from pellucid.data import Document, Sources, open_sources, sources_of_texts
from pellucid.errors import UserError
from pellucid.text import (
    TextTokenizer,
    TokenSpan,
    character_tokenizer,
    choose_vocabulary,
    least_size,
    load_tokenizer,
    spans,
    train_byte_pairs,
)

BAR = "│"
"""Stands between tokens where there is no colour."""

COLOURS = ("black on cyan", "black on yellow", "black on green", "black on magenta", "white on blue")
"""Neighbours never share one; every terminal has these."""


@dataclass(kw_only=True)
class TokensFlags:
    """Show how a text is cut into tokens, and how many there are."""

    file: tyro.conf.Positional[str]
    """A file or folder that `pellucid train` reads, or - for standard input."""
    tokenizer: TextValue = None
    """bpe or char, learned from this text; or the path of a run folder or a tokenizer.json.
    Default: as train does for texts of 100,000 characters or more; smaller ones it reads in characters."""
    vocab_size: WholeNumber = None
    """How many tokens bpe learns, at most. Default: as many as the script of the text needs."""
    encoding: TextValue = None
    """The encoding of the file, if it is not UTF-8."""
    text_column: TextValue = None
    """Which column of a .csv or .jsonl file is text. Default: the only one that can be."""
    drop_boilerplate: bool = False
    """Leave out a licence around a book, page numbers and running heads."""
    characters: int = 2000
    """How many characters to show; 0 is all."""
    json: bool = False
    """One JSON object a line for each token: its id, its text, its bytes."""


def main(words: Sequence[str]) -> None:
    """Run the verb."""
    flags = parse(TokensFlags, words, "tokens")
    if flags.characters < 0:
        raise UserError("characters to be 0 or more", came=str(flags.characters), remedy="choose 0 for all")
    sources = _sources(flags)
    tokenizer, reason = _tokenizer(flags, sources)
    text = _beginning(sources, flags.characters)
    cut = spans(tokenizer, text)
    if flags.json:
        for span in cut:
            token = span.token.decode("utf-8", "replace")
            print(printable_json({"id": span.token_id, "token": token, "bytes": span.token.hex()}))
        return
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        Console(highlight=False, soft_wrap=True).print(painted(cut))
    else:
        print(barred(cut).removesuffix("\n"))
    print(_summary(tokenizer, reason, sources, text, len(cut)), file=sys.stderr)


def painted(cut: Iterable[TokenSpan]) -> Text:
    """Tokens in colours, line by line as the text has them."""
    text = Text()
    for span, colour in zip(cut, cycle(COLOURS), strict=False):
        first, *others = span.lines
        text.append(first, style="reverse" if span.is_special else colour)
        for line in others:
            text.append("\n").append(line, style=colour)
    return text


def barred(cut: Iterable[TokenSpan]) -> str:
    """Tokens with bars between them, line by line as the text has them.

    Example:
        >>> tokenizer = character_tokenizer(["ab\\n"])
        >>> print(barred(spans(tokenizer, "ab\\na")))
        a│b│↵
        a
    """
    lines: list[list[str]] = [[]]
    for span in cut:
        first, *others = span.lines
        lines[-1] += [first] if first else []
        lines += [[other] if other else [] for other in others]
    return "\n".join(BAR.join(line) for line in lines)


def _sources(flags: TokensFlags) -> Sources:
    if flags.file == "-":
        return sources_of_texts([Document("standard input", text_from_stdin())])
    return open_sources(
        [flags.file],
        encoding=flags.encoding,
        text_column=flags.text_column,
        drop_boilerplate=flags.drop_boilerplate,
    )


def _tokenizer(flags: TokensFlags, sources: Sources) -> tuple[TextTokenizer, str]:
    """The tokenizer, and why it is that one if nobody asked for it."""
    match flags.tokenizer:
        case None | "bpe" if flags.vocab_size is not None:
            return train_byte_pairs(_texts(sources), flags.vocab_size), ""
        case None | "bpe" as asked:
            least = least_size(sources.characters)
            choice = choose_vocabulary(_texts(sources), least=least, characters_allowed=asked is None)
            return choice.tokenizer, choice.reason
        case "char" | "characters":
            return character_tokenizer(_texts(sources)), ""
        case path if path.lower().endswith(".gguf"):
            from pellucid.convert.any_tokenizer import load_any_tokenizer  # with torch, which the others do without

            return load_any_tokenizer(path), ""
        case path:
            return load_tokenizer(path), ""


def _beginning(sources: Sources, characters: int) -> str:
    """The first characters of the text, or all of it."""
    parts: list[str] = []
    for piece in _texts(sources):
        parts.append(piece)
        if characters and sum(map(len, parts)) >= characters:
            break
    return "".join(parts)[: characters or None]


def _texts(sources: Sources) -> Iterator[str]:
    return (piece.text for piece in sources.pieces())


def _summary(tokenizer: TextTokenizer, reason: str, sources: Sources, text: str, num_tokens: int) -> str:
    shown = (
        f"{len(text):,}" if len(text) == sources.characters else f"the first {len(text):,} of {sources.characters:,}"
    )
    rate = f", {len(text) / num_tokens:.2f} characters a token" if num_tokens else ""
    since = f", since {reason}" if reason else ""
    return f"[{shown} characters are {num_tokens:,} tokens{rate} · vocabulary of {tokenizer.vocab_size:,}{since}]"
