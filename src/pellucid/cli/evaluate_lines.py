"""What a person sees of an evaluation, and what a machine reads.

In: `Findings`.  Out: lines, a dictionary for JSON.  Used by: evaluate_run.py.  Read next: evaluate_page.py.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from pellucid.cli.evaluate_findings import Findings
from pellucid.cli.quoting import one_line
from pellucid.inspection import TextScore
from pellucid.pages.quantities import counted, duration
from pellucid.train.verdict import letters
from pellucid.yardsticks import Score

MOST_SHOWN = 12  # documents in the table; of more, so many at either end
AT_EITHER_END = 5
NAME_CELLS = 60  # of a document's name: with the figures before it a line of a wide terminal
MOST_KNOWN = 0.1  # of the text: with more that was learned from, a figure is no longer about new text
MOST_ESCAPED = 0.1  # of the characters: with more that the model cannot write, its figure is mostly their price
LEAST_LOSS = 0.0005  # bits per character: with less the figure would read 0.000
NAMES = {"letters": "letter counts", "xz after": "xz, after it"}  # of yardsticks; an n-gram is a table


def lines(findings: Findings) -> list[str]:
    """Everything but the notes on the text, which were printed before."""
    said = [sizes(findings), in_letters(findings), in_bits(findings), in_nats(findings)]
    if len(findings.documents) > 1 and not findings.held_out:
        said += ["", *documents_table(findings), ""]
    if findings.yardsticks:
        said += ["Beside it, in bits per character:", *yardstick_lines(findings.yardsticks)]
    more = (against_the_table(findings), lost(findings), escapes(findings), known(findings))
    return [*said, *filter(None, more), how(findings)]


def sizes(findings: Findings) -> str:
    """What was scored."""
    all_of_it = findings.together
    what = name_of(findings.documents[0])
    if findings.held_out:
        kind = "group" if findings.of_answers else "passage"
        of_what = " of conversations, the answers in them" if findings.of_answers else ""
        what = f"What the run held out, {counted(len(findings.documents), kind)}{of_what}"
    elif len(findings.documents) > 1:
        what = counted(len(findings.documents), "document")
    rate = f" of {all_of_it.characters / all_of_it.tokens:.2f} characters" if all_of_it.tokens else ""
    return f"{what}: {counted(all_of_it.characters, 'character')}, {counted(all_of_it.tokens, 'token')}{rate}."


def in_letters(findings: Findings) -> str:
    """The bits per character in words, beside others'."""
    others = [one for one in (*findings.yardsticks[:1], findings.best_table) if one is not None]
    beside = ", ".join(f"{called(one)} {letters(one.bits_per_character)}" for one in others)
    beside = f" ({beside})" if beside else ""
    return f"It hesitates between {letters(findings.together.bits_per_character)} letters a time{beside}."


def in_bits(findings: Findings) -> str:
    """The figures that compare, and the error of the first."""
    error = findings.score.standard_error
    spread = "" if error is None else f" ± {error:.3f} over {len(findings.score.bits):,} {findings.parts}"
    return (
        f"In bits per character: {findings.together.bits_per_character:.3f}{spread};"
        f" {findings.together.bits_per_byte:.3f} per byte. These compare whatever the tokens are."
    )


def in_nats(findings: Findings) -> str:
    """The figures that only compare with those of the same tokens."""
    loss, perplexity = findings.together.loss, findings.together.perplexity
    if loss is None or perplexity is None:
        return "No token stands for any of these characters, so there is no loss per token."
    figures = f"Loss {loss:.3f} nats per token, perplexity {number(perplexity)}"
    return f"{figures}: these compare only where the tokens are the same."


def documents_table(findings: Findings) -> list[str]:
    """A line for each document; of many, the hardest and the easiest."""
    documents = sorted(findings.documents, key=lambda score: score.bits_per_character, reverse=True)
    rows = [_row(document) for document in documents]
    title = "By document, the hardest first:"
    if len(rows) > MOST_SHOWN:
        title = f"By document, the {AT_EITHER_END} hardest and the {AT_EITHER_END} easiest of {len(rows):,}:"
        rows = [*rows[:AT_EITHER_END], ("…", "", "", "", ""), *rows[-AT_EITHER_END:]]
    head = ("bits/char", "bits/byte", "perplexity", "characters", "")
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)][:-1]
    laid_out = ("  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=False)) for row in (head, *rows))
    named = (f"  {cells}  {row[-1]}".rstrip() for cells, row in zip(laid_out, (head, *rows), strict=True))
    return [title, *named]


def yardstick_lines(scores: Sequence[Score]) -> Iterator[str]:
    """A line for each yardstick, with what it knew."""
    names = [called(score) for score in scores]
    width = max(map(len, names))
    for name, score in zip(names, scores, strict=True):
        yield f"  {name:<{width}}  {score.bits_per_character:6.3f}  {score.note}".rstrip()


def called(score: Score) -> str:
    """What a yardstick is called in a sentence.

    Example:
        >>> called(Score("5-gram", (1.0,), (1,))), called(Score("xz", (1.0,), (1,)))
        ('5-gram table', 'xz')
    """
    return f"{score.name} table" if score.name.endswith("-gram") else NAMES.get(score.name, score.name)


def against_the_table(findings: Findings) -> str:
    """How the model stands beside the best letter table, part by part."""
    if findings.lead is None or findings.best_table is None:
        return ""
    lead, error = findings.lead
    figure = f"{abs(lead):.3f}" + ("" if error is None else f" ± {error:.3f}")
    name = called(findings.best_table)
    if error is not None and abs(lead) <= error:
        return f"As good as the {name}: the difference, {figure} bits, is within its error."
    return f"{'Better' if lead > 0 else 'Worse'} than the {name} by {figure} bits per character."


def lost(findings: Findings) -> str:
    """What it costs to hold the weights in something else than they are stored in."""
    if findings.lost is None:
        return ""
    loss, error = findings.lost
    if abs(loss) < LEAST_LOSS and (error is None or error < LEAST_LOSS):
        return f"In {findings.precision} it is as good as with the weights as stored, to 0.001 bits per character."
    digits = 4 if error is not None and error < LEAST_LOSS else 3
    figure = f"{abs(loss):.{digits}f}" + ("" if error is None else f" ± {error:.{digits}f}")
    if error is not None and abs(loss) < error:
        return (
            f"In {findings.precision} it is as good as with the weights as stored: {figure} bits is within its error."
        )
    verb = "loses" if loss > 0 else "gains"
    return f"In {findings.precision} it {verb} {figure} bits per character against the weights as stored."


def escapes(findings: Findings) -> str:
    """What is to be said of characters that the model cannot write."""
    escaped, characters = findings.together.escaped, findings.together.characters
    if not escaped:
        return ""
    equal = ", as they cost the tables" if findings.best_table else ""
    said = (
        f"{counted(escaped, 'character')} that its tokenizer cannot write cost {findings.escape_bits:.1f} bits"
        f" each{equal}; they are in the bits, not in the loss per token."
    )
    if escaped > MOST_ESCAPED * characters:
        said += f" They are {escaped / characters:.0%} of the text: the figure tells little of the model."
    return said


def known(findings: Findings) -> str:
    """What is to be said of a text that was learned from."""
    if findings.known is None or findings.known <= MOST_KNOWN:
        return ""
    return (
        f"About {findings.known:.0%} of this text stands word for word in the text it learned from: the figures say how"
        " well it remembers, not how well it predicts."
    )


def how(findings: Findings) -> str:
    """How it was scored, and how fast."""
    context, stride = findings.context_length, findings.stride
    kind = f"windows of {context:,} tokens, none overlapping"
    if findings.of_answers:
        kind = f"conversations of up to {context:,} tokens, each read from its beginning"
    if stride < context:
        kind = f"windows of {context:,} tokens, {stride:,} apart: each token is predicted from {context - stride:,} or"
        kind += f" more before it ({'fewer' if context - stride > 1 else 'none'} only where the text begins)"
    took = f"{findings.seconds:.1f} s" if findings.seconds < 10 else duration(findings.seconds)
    if findings.of_answers:  # many more tokens were read than scored
        return f"[{kind} · {took}]"
    return f"[{kind} · {took}, {findings.tokens_per_second:,.0f} tokens/s]"


def name_of(document: TextScore) -> str:
    """A document's name on a line; of a long one the end, where paths differ.

    Example:
        >>> name_of(TextScore(name="a/" * 99 + "b.txt", characters=1, utf8_bytes=1, tokens=1, nats=1.0))[-12:]
        '/a/a/a/b.txt'
    """
    name = document.name
    return one_line(name if len(name) <= NAME_CELLS else f"…{name[1 - NAME_CELLS :]}", NAME_CELLS)


def number(value: float) -> str:
    """A perplexity with as many digits as mean something.

    Example:
        >>> number(7.654), number(1234.5), number(1e12)
        ('7.65', '1,234', '1e+12')
    """
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}" if value < 1e6 else f"{value:.0e}"


def as_json(findings: Findings) -> dict[str, Any]:
    """What --json says."""
    lead = findings.lead
    table = findings.best_table
    return {
        "model": findings.model,
        "text": "held-out answers" if findings.of_answers else "held out" if findings.held_out else "files",
        "context_length": findings.context_length,
        "stride": findings.stride,
        "together": _figures(findings.together)
        | {
            "standard_error": findings.score.standard_error,
            "standard_error_over": findings.parts,
        },
        "documents": [{"name": score.name} | _figures(score) for score in findings.documents],
        "escape_bits": findings.escape_bits,
        "yardsticks": [
            {"name": score.name, "bits_per_character": score.bits_per_character, "note": score.note}
            for score in findings.yardsticks
        ],
        "lead": None
        if lead is None or table is None
        else {"over": table.name, "bits_per_character": lead[0], "standard_error": lead[1]},
        "precision": findings.precision,
        "lost": None
        if findings.lost is None
        else {"bits_per_character": findings.lost[0], "standard_error": findings.lost[1]},
        "known_share": findings.known,
        "notes": list(findings.notes),
        "seconds": findings.seconds,
        "tokens_per_second": findings.tokens_per_second,
    }


def _figures(score: TextScore) -> dict[str, Any]:
    return {
        "bits_per_character": score.bits_per_character,
        "bits_per_byte": score.bits_per_byte,
        "loss": score.loss,
        "perplexity": score.perplexity,
        "characters": score.characters,
        "utf8_bytes": score.utf8_bytes,
        "tokens": score.tokens,
        "escaped_characters": score.escaped,
    }


def _row(score: TextScore) -> tuple[str, ...]:
    perplexity = "–" if score.perplexity is None else number(score.perplexity)
    figures = (f"{score.bits_per_character:.3f}", f"{score.bits_per_byte:.3f}", perplexity, f"{score.characters:,}")
    return (*figures, name_of(score))
