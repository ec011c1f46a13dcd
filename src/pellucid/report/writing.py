"""Writes report.html: all that a run has to tell, on one page.

Every part is made alone. One that cannot be made, because the run ended too early or a file is damaged, leaves a
sentence in its place, and the others stay.

In: a run folder.  Out: report.html.  Used by: the command line.  Read next: ../cli/report.py.
"""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec

from pellucid import loading
from pellucid.checkpoint import RunFolder
from pellucid.checkpoint.durable import in_a_sentence, write_durably
from pellucid.data.prepared_folder import CARD, FolderCard
from pellucid.errors import RunFolderError, UserError
from pellucid.loading import Loaded
from pellucid.pages import Html, Section, page, paragraph
from pellucid.report.attention import attention
from pellucid.report.copying import copied
from pellucid.report.course import course
from pellucid.report.health import health
from pellucid.report.identity import exactly, reveals
from pellucid.report.learning import curves, noticed, samples
from pellucid.report.opening import closing_sample, lead
from pellucid.report.record import read_record
from pellucid.report.text_card import text_card
from pellucid.train.material import PREPARED, Material, reopen_material

DAMAGED = (OSError, ValueError, TypeError, KeyError, msgspec.ValidationError)
"""What reading a file of the run may come to, if somebody or something has changed it."""

STYLE = """
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.2rem, 1fr)); gap: 1rem 1.4rem;
  margin: 1.4rem 0; }
.figures b { display: block; font: 600 1.7rem/1.15 var(--serif); font-variant-numeric: tabular-nums lining-nums; }
.figures small { font-size: .95rem; font-weight: 400; }
.figures span { color: var(--muted); font-size: .85rem; line-height: 1.35; display: block; margin-top: .2rem; }
mark { background: color-mix(in srgb, var(--series-5) 35%, transparent); color: inherit; border-radius: 2px; }
ul.warn { padding-inline-start: 1.6rem; }
.then { break-inside: avoid; }
.then { margin: .6rem 0; min-width: 0; }
.then p { margin: 0; }
.pair .passage { font-size: .9rem; line-height: 1.5; }
dd .code { font-size: .74rem; }
.letters { letter-spacing: .15em; }
.tokens { line-height: 2; }
.tokens bdi { background: var(--wash); border-radius: 3px; padding: .12rem .3rem; margin: 0 .1rem; white-space: pre; }
.layer h3 { margin: 1rem 0 .3rem; }
.heads { display: grid; grid-template-columns: repeat(auto-fill, minmax(6.2rem, 1fr)); gap: .5rem .7rem; }
.heads figure { margin: 0; }
.heads img { display: block; width: 100%; aspect-ratio: 1; image-rendering: pixelated; border: 1px solid var(--rule); }
.heads figcaption { font-size: .72rem; line-height: 1.25; margin-top: .15rem; }
"""


def write_report(folder: RunFolder, out: Path | None = None) -> Path:
    """Write the page of a run, whether it is completed, stopped, killed or still going on.

    Args:
        folder: The run.
        out: Where to. Default: report.html in it.

    Returns:
        Where it is.

    Raises:
        UserError: if the disk refuses, or the model was imported.
    """
    if "imported" in folder.facts:
        raise RunFolderError(
            f"a run in '{folder.path}' that was trained here",
            came="a model that was imported, of whose training nothing is known",
            remedy=f"see what it makes of a text: pellucid evaluate {folder.path} other.txt --tokens surprise.html",
        )
    out = folder.report_path if out is None else out
    whole = report_page(folder)
    if out.is_dir():
        remedy = f"name the page in it, such as {out / 'report.html'}"
        raise RunFolderError(f"a file to write at '{out}'", came="a folder", remedy=remedy)
    with in_a_sentence(out):
        write_durably(out, whole.encode("utf-8"))
    return out


def report_page(folder: RunFolder) -> str:
    """The page as text."""
    with in_a_sentence(folder.metrics_path):
        record = read_record(folder)
    loaded, missing = _opened(folder)
    material = _material(folder)
    maps = _made(attention, record, loaded, material) if loaded else paragraph(missing)
    sections = [
        Section("It writes", _made(closing_sample, record)),
        Section("How it learned", _made(curves, record)),
        Section("Noticed on the way", _made(noticed, record)),
        Section("The same prompt, again and again", _made(samples, record)),
        Section("Copied?", _made(copied, record, material.training_text() if material else ())),
        Section("The text", _made(text_card, record, _cards(folder))),
        Section("The plan, and what happened", _made(course, record)),
        Section("What its attention reads", maps),
        Section("The health of its modules", _made(health, record)),
        Section("Exactly this run", _made(exactly, record)),
        Section("Before you share this page", _made(reveals, record)),
    ]
    return page(record.name, sections, lead=_made(lead, record), style=STYLE)


def _made(part: Callable[..., Html], *given: object) -> Html:
    """A part, or a sentence in its place: what a run has left may be damaged in ways that nobody foresees."""
    try:
        return part(*given)
    except Exception as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        return paragraph(f"This part could not be made ({what[:200]}).", kind="note")


def _opened(folder: RunFolder) -> tuple[Loaded | None, str]:
    """The model with its tokenizer, or why there is none."""
    try:
        return loading.load(folder.path), ""
    except UserError as error:
        return None, f"There is no model to look into. {error}"


def _material(folder: RunFolder) -> Material | None:
    """The text as ids, if it is still there, and as it was."""
    try:
        return reopen_material(folder.tokens_path, folder.tokenizer_path)
    except (UserError, *DAMAGED):
        return None


def _cards(folder: RunFolder) -> list[str]:
    """What the cards of prepared folders say, if the run reads such."""
    try:
        named = json.loads((folder.tokens_path / PREPARED).read_bytes())["prepared"]
        found = [msgspec.json.decode((Path(one["path"]) / CARD).read_bytes(), type=FolderCard) for one in named]
    except DAMAGED:
        return []
    return [sentence for card in found for sentence in card.text.sentences]
