"""`pellucid compare RUN RUN…`: sets runs side by side, each difference beside its error.

In: flags.  Out: lines or JSON; a page.  Used by: main, train_series.py.  Read next: ../compare/.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from pellucid.checkpoint.durable import in_a_sentence, write_durably
from pellucid.cli.arguments import parse
from pellucid.cli.printable import printable, printable_json
from pellucid.cli.values import Text
from pellucid.errors import UserError

if TYPE_CHECKING:
    from pellucid.compare import Comparison


@dataclass(kw_only=True)
class CompareFlags:
    """Set runs side by side: what they reached, what it cost, and whether a difference is larger than its error.

    Runs that differ in their seed alone are one variant. The first variant is what the others are measured against.
    """

    runs: Annotated[
        tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="RUN [RUN ...]", help_behavior_hint="")
    ] = ()
    """Run folders, or folders of run folders, as a recipe leaves them."""
    out: Text = None
    """Write a page with curves to this .html file."""
    json: bool = False
    """One JSON object instead of lines: every reading of every run, differences, settings."""


def main(words: Sequence[str]) -> None:
    """Run the verb."""
    flags = parse(CompareFlags, words, "compare")
    page = page_path(flags.out)
    from pellucid.compare import compare

    comparison = compare(flags.runs)
    if flags.json:
        print(printable_json(comparison.as_json()))
    else:
        print("\n".join(printed(comparison)))
    if page is not None:
        write_page(comparison, page)
        if not flags.json:
            print(printable(f"The same with curves: {page}"))


def printed(comparison: "Comparison") -> list[str]:
    """The lines of a comparison, safe to print."""
    from pellucid.compare import lines

    return [printable(line) for line in lines(comparison)]


def page_path(out: str | None) -> Path | None:
    """Where the page goes.

    Raises:
        UserError: if that is no place for a page.
    """
    if out is None:
        return None
    path = Path(out)
    if path.suffix not in (".html", ".htm") or path.is_dir() or not path.absolute().parent.is_dir():
        raise UserError(
            "--out with a file name that ends in .html, in a folder that is there",
            came=f"'{out}'",
            remedy="say --out compare.html",
        )
    return path


def write_page(comparison: "Comparison", path: Path) -> None:
    """Write the page, all or nothing."""
    from pellucid.compare.compare_page import comparison_page

    with in_a_sentence(path):
        write_durably(path, comparison_page(comparison).encode())
