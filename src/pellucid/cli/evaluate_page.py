"""The page of `pellucid evaluate --tokens`: the figures, and the text with every token's surprise as a colour.

In: `Findings`, scored documents.  Out: an HTML file.  Used by: evaluate_run.py.  Read next: ../inspection/heat_map.py.
"""

from collections.abc import Sequence
from pathlib import Path

from pellucid.cli.evaluate_findings import Findings
from pellucid.cli.evaluate_lines import (
    AT_EITHER_END,
    MOST_SHOWN,
    against_the_table,
    called,
    escapes,
    in_letters,
    known,
    number,
)
from pellucid.errors import UserError
from pellucid.inspection import (
    HEAT_STYLE,
    Passage,
    ScoredDocument,
    TextScore,
    characters_of,
    chosen_passages,
    heat_map,
    legend,
)
from pellucid.loading import Loaded
from pellucid.pages import Html, Section, facts, foreign, joined, page, paragraph, table

ENDINGS = (".html", ".htm")
WHY = {
    "beginning": "The beginning",
    "hardest": "The passages that surprised it most, in bits per character",
    "easiest": "The passages that surprised it least",
}


def check_page(path: Path) -> None:
    """Refuse a page that could not be written, or would take the place of somebody's text, before any work is done.

    Raises:
        UserError: in that case.
    """
    if path.suffix.lower() not in ENDINGS:
        raise UserError(
            f"--tokens with the name of a page that ends in {ENDINGS[0]}",
            came=f"'{path}'",
            remedy=f"name it, as in --tokens {path.stem or 'surprise'}{ENDINGS[0]}",
        )
    if path.is_dir() or not path.absolute().parent.is_dir():
        came = "a folder" if path.is_dir() else "one in a folder that is not there"
        raise UserError(f"a page that can be written to '{path}'", came=came, remedy="choose another name")


def write_page(path: Path, findings: Findings, documents: Sequence[ScoredDocument], loaded: Loaded) -> None:
    """Write the page.

    Raises:
        UserError: if it cannot be written.
    """
    text = evaluation_page(findings, documents, loaded)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        came = f"“{error.strerror}”"
        raise UserError(f"a page that can be written to '{path}'", came=came, remedy="choose another name") from error


def evaluation_page(findings: Findings, documents: Sequence[ScoredDocument], loaded: Loaded) -> str:
    """The page, as HTML."""
    passages = chosen_passages(documents)
    sections = [
        Section("Figures", joined([_figures(findings), _others(findings)])),
        Section("Documents", _documents(findings)),
        Section("Token by token", joined([_reading_it(findings, passages, documents), legend()])),
    ]
    for why in dict.fromkeys(passage.why for passage in passages):
        maps = (
            joined(
                [
                    _place(documents, one),
                    heat_map(loaded.model, loaded.tokenizer, documents[one.document], one, stride=findings.stride),
                ]
            )
            for one in passages
            if one.why == why
        )
        sections.append(Section(WHY.get(why, ""), joined(maps)))
    what = findings.documents[0].name if len(findings.documents) == 1 else f"{len(findings.documents):,} documents"
    what = "the text it held out" if findings.held_out else what
    lead = paragraph(
        f"{findings.together.bits_per_character:.3f} bits per character. {in_letters(findings)} ",
        " ".join(filter(None, (against_the_table(findings), known(findings)))),
        kind="lead",
    )
    return page(f"What surprises {findings.model} in {what}", sections, lead=lead, style=HEAT_STYLE)


def _figures(findings: Findings) -> Html:
    score, error = findings.together, findings.score.standard_error
    spread = "" if error is None else f" ± {error:.3f}, over {len(findings.score.bits):,} {findings.parts}"
    pairs = [
        ("bits per character", f"{score.bits_per_character:.3f}{spread}"),
        ("bits per byte", f"{score.bits_per_byte:.3f}"),
    ]
    if score.loss is not None and score.perplexity is not None:
        pairs += [("nats per token", f"{score.loss:.3f}"), ("perplexity", number(score.perplexity))]
    pairs += [
        ("characters", f"{score.characters:,}"),
        ("tokens", f"{score.tokens:,}"),
        ("windows", f"{findings.context_length:,} tokens, {findings.stride:,} apart"),
    ]
    note = (
        "Bits per character and per byte compare with any model's; loss and perplexity only where tokens are the same."
    )
    return joined([facts(pairs), paragraph(" ".join(filter(None, (note, escapes(findings)))), kind="note")])


def _others(findings: Findings) -> Html:
    if not findings.yardsticks:
        return Html("")
    rows = [("this model", f"{findings.together.bits_per_character:.3f}", "")]
    rows += [(called(one), f"{one.bits_per_character:.3f}", one.note) for one in findings.yardsticks]
    return table(["predictor", "bits per character", "what it knew"], rows)


def _documents(findings: Findings) -> Html:
    documents = sorted(findings.documents, key=lambda score: score.bits_per_character, reverse=True)
    if len(documents) == 1:
        return Html("")
    note = "" if len(documents) <= MOST_SHOWN else f"The {AT_EITHER_END} hardest and the {AT_EITHER_END} easiest."
    shown = documents if len(documents) <= MOST_SHOWN else [*documents[:AT_EITHER_END], *documents[-AT_EITHER_END:]]
    headers = ["document", "bits per character", "bits per byte", "perplexity", "characters"]
    return joined([paragraph(note, kind="note") if note else "", table(headers, map(_row, shown))])


def _row(score: TextScore) -> list[str]:
    perplexity = "" if score.perplexity is None else number(score.perplexity)
    figures = [f"{score.bits_per_character:.3f}", f"{score.bits_per_byte:.3f}", perplexity, f"{score.characters:,}"]
    return [foreign(score.name), *figures]


def _reading_it(findings: Findings, passages: Sequence[Passage], documents: Sequence[ScoredDocument]) -> Html:
    shown = sum(passage.stop - passage.first for passage in passages)
    tokens = sum(len(document.ids) for document in documents)
    how_much = (
        f"All {tokens:,} tokens are shown."
        if shown == tokens
        else f"Of {tokens:,} tokens {shown:,} are shown: the beginning, the passages that surprised the model most, and"
        " those that surprised it least."
    )
    return paragraph(
        "The darker a token (in the dark, the brighter), the less the model expected it. Point at one, or tap it, to"
        " see what it cost and what was expected instead. · is a space, ↵ a line end, ⟨E7⟩ a byte that is no character"
        f" by itself. {how_much} This page holds the text itself: share it with care."
    )


def _place(documents: Sequence[ScoredDocument], passage: Passage) -> Html:
    """Which document, and where in it."""
    document = documents[passage.document]
    if passage.why == "whole" and len(documents) == 1:
        return Html("")
    begin, end = characters_of(document, passage.first, passage.stop)
    where = "" if passage.why == "whole" else f", characters {begin + 1:,} to {end:,}"
    return paragraph(foreign(document.score.name), where, kind="note")
