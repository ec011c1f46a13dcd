"""Attention at a glance: one sentence, and for every head of every layer what each token read.

The pictures are of the very weights that the model multiplied, whole squares: what reads ahead would be seen.

In: a `Record`, the model, the text as ids.  Out: HTML.  Used by: writing.py.  Read next: health.py.
"""

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
import torch

from pellucid.inspection import AttentionMap, attention_maps, habit
from pellucid.loading import Loaded
from pellucid.pages import Html, escaped, joined, paragraph
from pellucid.report.picture import picture
from pellucid.report.record import Record, text
from pellucid.report.spaced import spaced
from pellucid.text import TextTokenizer, spans_of_ids
from pellucid.train.material import Material

MOST_TOKENS = 40  # of the sentence: a picture is about a hundred pixels wide
LEAST_CHARACTERS, MOST_CHARACTERS = 15, 160
SEARCHED = 2000  # characters of the first held-out passage: a page
MOST_PICTURES = 400  # a page that a phone can hold; of more, layers are left out evenly
MOST_PARAMETERS = 300_000_000  # a larger model would keep the person waiting at the end of a run
_ENDS = re.compile(r"(?<=[.!?…。！？؟।۔])\s*|\n+")


def attention(record: Record, loaded: Loaded, material: Material | None) -> Html:
    """The sentence, cut into tokens, and a row of pictures for each layer."""
    size = loaded.model.num_parameters()
    if size > MOST_PARAMETERS:
        return paragraph(f"The model has {size:,} parameters: too many for pictures at the end of a run.")
    ids = sentence_ids(record, loaded, material)
    if len(ids) < 2:
        return paragraph("There is no sentence to show.")
    maps = attention_maps(loaded.model, torch.from_numpy(np.asarray(ids, dtype=np.int64)))
    if not maps:
        return paragraph("Its attention is a part of somebody's own, whose weights nobody can know.")
    shown = spaced(maps, max(1, MOST_PICTURES // len(maps[0].weights)))
    fewer = f" {len(shown)} of {len(maps)} layers are shown." if len(shown) < len(maps) else ""
    return joined(
        [
            paragraph(
                "A row of a picture is a token of this sentence, from the first at the top; the squares in it are the"
                " tokens that it reads from, itself on the diagonal, the bluer the more. The root of each weight is"
                " drawn, so that small ones are seen. A head is named where more than half of what it reads is itself,"
                f" the token before, or the first token.{fewer}",
                kind="note",
            ),
            _tokens(loaded.tokenizer, ids),
            joined(_layer(one) for one in shown),
        ]
    )


def sentence_ids(record: Record, loaded: Loaded, material: Material | None) -> list[int]:
    """The ids of a sentence that the model never learned from, after the beginning of a document; else of a sample."""
    tokenizer, most = loaded.tokenizer, min(MOST_TOKENS, loaded.model.config.context_length)
    held_out = next(iter(material.held_out_texts(SEARCHED)), "") if material else ""
    sample = text(record.last("Finished").get("sample")) or text(record.last("Sampled").get("text"))
    ids = tokenizer.encode(_sentence(held_out) or _sentence(sample)).tolist()
    return [tokenizer.end_of_text_id, *ids][:most]


def _sentence(passage: str) -> str:
    """The first whole sentence of a fair length; without one, the beginning."""
    _, *parts = [part.strip() for part in _ENDS.split(passage)] or [""]  # the first is the end of one, as it was cut
    fair = (part for part in parts if LEAST_CHARACTERS <= len(part) <= MOST_CHARACTERS)
    return next(fair, passage.strip()[:MOST_CHARACTERS])


def _tokens(tokenizer: TextTokenizer, ids: Sequence[int]) -> Html:
    spans = list(spans_of_ids(tokenizer, ids))
    direction = _direction("".join(span.shown for span in spans if not span.is_special))
    chips = "".join(f"<bdi>{escaped(span.shown)}</bdi>" for span in spans)
    return Html(f'<p class="tokens" dir="{direction}">{chips}</p>')


def _direction(shown: str) -> str:
    """Of the row of tokens, each of which stands alone: as the first letter is written."""
    for character in shown:
        if (way := unicodedata.bidirectional(character)) in ("L", "R", "AL"):
            return "ltr" if way == "L" else "rtl"
    return "ltr"


def _layer(one: AttentionMap) -> Html:
    heads = []
    for number, weights in enumerate(one.weights):
        name, share = habit(weights)
        reads = f"{name} {share:.0%}" if name != "many" else ""
        described = f"Layer {one.layer + 1}, head {number + 1} reads {reads or 'many tokens'}"
        caption = f"<figcaption>{reads}</figcaption>" if reads else ""
        heads.append(f"<figure>{picture(weights.numpy(), described)}{caption}</figure>")
    return Html(f'<div class="layer"><h3>Layer {one.layer + 1}</h3><div class="heads">{"".join(heads)}</div></div>')
