"""A text in which every token is coloured by how much it surprised a model, as a part of a page.

The scale is of lightness alone, from paper to ink: it can be read in print, without colour, and by those who see
colours otherwise. What a token cost and what the model had expected instead stands at the foot of the page while one
points at it, or taps it. There is no script: a page that shows somebody's text should not have one.

A token's box has no edges, so that letters that join (Arabic, Persian) still do; each line is written in the direction
of its own script.

In: a model, its tokenizer, scored documents.  Out: `heat_map`, `legend`, `HEAT_STYLE`.  Used by: the command line.
Read next: attention_maps.py.
"""

import itertools
import math
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from pellucid.inspection.passages import Passage, characters_of
from pellucid.inspection.scored_text import ScoredDocument
from pellucid.inspection.surprise import Predictions, predictions
from pellucid.nn import TransformerLM
from pellucid.pages.markup import Html, escaped
from pellucid.text import TextTokenizer, TokenSpan, spans_of_ids, visible

STEPS = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 12.0)
"""Bits at which the colour changes: finer where a good guess is told from a fair one."""

INK, DARK_INK = ("#1c1d20", "#ffffff"), ("#e8e8e4", "#16171a")
"""Letters on the pale and on the strong colours, in the light and in the dark."""

LIGHT = ("#fdfdfb", "#fff1d0", "#ffe0a3", "#ffc869", "#f6a43f", "#e37e26", "#a8420e", "#6b1f05")
DARK = ("#16171a", "#2b2417", "#463113", "#634210", "#825309", "#d28a22", "#f7bd58", "#ffefc4")
"""Backgrounds, from what was expected to what nobody would have guessed."""

STRONG_LIGHT, STRONG_DARK = 6, 5
"""The first colour that needs the other ink."""

OPEN, CLOSE = "&#8296;", "&#8297;"
"""Unicode's isolates around a piece of any script, so that it leaves the line it stands in as it is."""


def _rules(colours: Sequence[str], inks: Sequence[str], strong: int) -> str:
    return " ".join(
        f".s{step} {{ background: {colour}; color: {inks[step >= strong]}; }}" for step, colour in enumerate(colours)
    )


HEAT_STYLE = f"""
.heat {{ white-space: pre-wrap; unicode-bidi: plaintext; text-align: start; font: 1rem/1.9 var(--serif); margin: .4rem 0
  1.2rem; }}
.heat, .scale {{ -webkit-print-color-adjust: exact; print-color-adjust: exact; }}
.heat span {{ box-shadow: inset 0 -1px 0 var(--rule); border-radius: 2px; -webkit-box-decoration-break: clone;
  box-decoration-break: clone; }}
.heat [tabindex] {{ cursor: help; }}
.heat .missing {{ outline: 1px dashed currentColor; outline-offset: -1px; }}
.heat span:hover, .heat span:focus {{ outline: 2px solid var(--link); outline-offset: 0; }}
.heat span:hover::after, .heat span:focus::after {{ content: attr(data-tip); position: fixed; inset: auto 0 0 0;
  z-index: 2; padding: .6rem 1rem .7rem; white-space: pre-line; direction: ltr; text-align: left; unicode-bidi: isolate;
  font: .9rem/1.45 var(--sans); color: var(--ink); background: var(--wash); border-top: 2px solid var(--link); }}
.heat:hover span:focus:not(:hover)::after {{ content: none; }}
.scale {{ display: flex; flex-wrap: wrap; gap: .2rem; margin: .6rem 0; padding: 0; list-style: none; font-size: .85rem;
  line-height: 1.3; }}
.scale li {{ padding: .25rem .55rem; border: 1px solid var(--rule); border-radius: 2px; }}
.scale small {{ display: block; color: inherit; }}
{_rules(LIGHT, INK, STRONG_LIGHT)}
@media screen and (prefers-color-scheme: dark) {{ {_rules(DARK, DARK_INK, STRONG_DARK)} }}
@media print {{ .heat span::after {{ content: none !important; }} .heat span {{ outline: none !important; }} }}
"""
"""What a page with a heat map needs beside the style of all pages."""


def heat_map(
    model: TransformerLM,
    tokenizer: TextTokenizer,
    document: ScoredDocument,
    passage: Passage,
    *,
    stride: int | None = None,
) -> Html:
    """A passage, every token coloured; the model reads the windows that score it once more.

    Args:
        model: The model.
        tokenizer: Its own.
        document: The document.
        passage: Which of its tokens.
        stride: As when it was scored.

    Returns:
        A piece of a page, whose style needs `HEAT_STYLE`.
    """
    ids = np.concatenate(([tokenizer.start_id], document.ids))
    first, stop = passage.first, passage.stop
    found = predictions(model, ids, first=first + 1, stop=stop + 1, stride=stride)
    cut = list(spans_of_ids(tokenizer, document.ids[first:stop]))
    begin, end = characters_of(document, first, stop)
    missing = {
        int(place): character
        for place, character in zip(document.escaped, document.missing, strict=False)
        if begin <= place < end
    }
    parts, names = [], _Names(tokenizer)
    waiting = sorted(missing)
    for number, (span, place) in enumerate(zip(cut, document.starts[first:stop].tolist(), strict=True)):
        while waiting and waiting[0] < place:
            parts.append(_missing(missing[waiting.pop(0)], document.score.escape_bits))
        parts.append(_token(span, _tip(span, found, number, names)))
    parts += [_missing(missing[place], document.score.escape_bits) for place in waiting]
    return Html(f'<div class="heat" dir="auto">{"".join(parts)}</div>')


def legend() -> Html:
    """The colours and what they mean, in bits and as a probability."""
    bounds = [0.0, *STEPS, math.inf]
    entries = []
    for step, (low, high) in enumerate(itertools.pairwise(bounds)):
        bits = f"{low:g}–{high:g} bits" if 0 < low < high < math.inf else f"under {high:g} bits"
        bits = bits if high < math.inf else f"over {low:g} bits"
        chance = f"{likely(high)} or more" if high < math.inf else f"under {likely(low)}"
        entries.append(f'<li class="s{step}">{bits} <small>{chance}</small></li>')
    return Html(f'<ul class="scale">{"".join(entries)}</ul>')


def likely(bits: float) -> str:
    """A probability, given as bits, as a person says it.

    Example:
        >>> likely(1), likely(6), likely(12), likely(40)
        ('50%', '1.6%', '0.024%', '1 in 1e+12')
    """
    percent = 100 * 2.0**-bits
    if percent >= 10:
        return f"{percent:.0f}%"
    if percent >= 0.01:
        return f"{percent:.2g}%"
    return f"1 in {2.0**bits:,.0f}" if bits < 24 else f"1 in {2.0 ** min(bits, 1000.0):.0e}"


class _Names:
    """Tokens as a tip shows them: each once."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self._tokenizer = tokenizer
        self._known: dict[int, Html] = {}

    def of(self, token_id: int) -> Html:
        """A token, kept apart from the words around it."""
        if token_id not in self._known:
            (span,) = spans_of_ids(self._tokenizer, [token_id])
            self._known[token_id] = Html(f"“{OPEN}{escaped(span.shown)}{CLOSE}”")
        return self._known[token_id]


def _tip(span: TokenSpan, found: Predictions, number: int, names: _Names) -> tuple[float, Html]:
    """A token's bits, and what is said of it."""
    bits = float(found.nats[number]) / math.log(2)
    rank = "the likeliest" if found.ranks[number] == 1 else f"number {found.ranks[number]:,} of what it expected"
    expected = ", ".join(
        f"{names.of(token_id)} {likely(nats / math.log(2))}"
        for token_id, nats in zip(found.likeliest[number].tolist(), found.likeliest_nats[number].tolist(), strict=True)
    )
    said = f"{names.of(span.token_id)} {likely(bits)} · {bits:.2f} bits · {rank}&#10;Likeliest: {expected}"
    return bits, Html(said)


def _token(span: TokenSpan, told: tuple[float, Html]) -> str:
    bits, tip = told
    if span.is_special:
        return f"<br><small>{escaped(span.shown)}</small><br>"
    shown = "<br>".join(escaped(line).replace("·", "·<wbr>") for line in span.lines)
    return f'<span class="s{bisect_right(STEPS, bits)}" tabindex="0" data-tip="{tip}">{shown}</span>'


def _missing(character: str, bits: float) -> str:
    tip = f"The tokenizer cannot write this character: {bits:.1f} bits, as it costs everybody"
    shown = escaped(visible(character.encode("utf-8", "surrogatepass")))
    return f'<span class="s{bisect_right(STEPS, bits)} missing" tabindex="0" data-tip="{tip}">{shown}</span>'
