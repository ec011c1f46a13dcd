import html
import math
import re

import numpy as np
import pytest

from pellucid.data import Document, prepare, sources_of_texts
from pellucid.inspection import Passage, chosen_passages, predictions, score_documents, score_passages
from pellucid.inspection.heat_map import (
    DARK,
    DARK_INK,
    HEAT_STYLE,
    INK,
    LIGHT,
    STEPS,
    STRONG_DARK,
    STRONG_LIGHT,
    heat_map,
    legend,
    likely,
)
from pellucid.text import character_tokenizer, spans, train_byte_pairs
from tests.train.small_run import small_model, small_text

NASTY = (
    "<img src=x onerror=alert(1)> \"a\" & 'b' </span></div><script>alert(2)</script>\n سلام دنیا 癖 \x1b[31m \u202e\n\n"
)


@pytest.fixture(scope="module")
def pairs():
    tokenizer = train_byte_pairs([NASTY], 290)
    return small_model(vocab_size=tokenizer.vocab_size), tokenizer


def drawn(model, tokenizer, text, *, first=0, stop=None):
    (document,) = score_documents(model, tokenizer, sources_of_texts([Document("a", text)]), escape_bits=30.0, stride=8)
    passage = Passage(0, first, len(document.ids) if stop is None else stop, "whole")
    return heat_map(model, tokenizer, document, passage, stride=8), document


def tokens(markup):
    """(class, tip, what is shown) of every token."""
    found = re.findall(r'<span class="([^"]*)" tabindex="0" data-tip="([^"]*)">(.*?)</span>', markup)
    return [(kind, html.unescape(tip), html.unescape(re.sub(r"<wbr>", "", shown))) for kind, tip, shown in found]


def test_every_token_is_there_in_order_and_marked(pairs):
    markup, _ = drawn(*pairs, NASTY)
    shown = [shown for *_, shown in tokens(markup)]
    assert shown == ["<br>".join(span.lines) for span in spans(pairs[1], NASTY)]
    assert "⟨E7⟩" in "".join(shown)


def test_markup_in_a_text_is_text(pairs):
    markup, _ = drawn(*pairs, NASTY)
    assert set(re.findall(r"</?(\w+)", markup)) == {"div", "span", "br", "wbr"}
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202a-\u202e\u2066-\u2069]", markup)
    assert not set(re.sub(r"</?(div|span|br|wbr)( [^<>]*)?>", "", markup)) & set("<>\"'")
    assert 'onerror="' not in markup


def test_each_line_is_read_in_the_direction_of_its_own_script(pairs):
    assert drawn(*pairs, NASTY)[0].startswith('<div class="heat" dir="auto">')
    assert "unicode-bidi: plaintext" in HEAT_STYLE


def test_a_tip_tells_probability_bits_rank_and_what_was_likeliest(pairs):
    model, tokenizer = pairs
    markup, document = drawn(model, tokenizer, NASTY)
    ids = np.concatenate(([tokenizer.end_of_text_id], document.ids))
    found = predictions(model, ids, stride=8)
    for number, (kind, tip, _) in enumerate(tokens(markup)):
        bits = float(found.nats[number]) / math.log(2)
        assert f"{likely(bits)} · {bits:.2f} bits" in tip
        rank = found.ranks[number]
        assert ("the likeliest" if rank == 1 else f"number {rank:,} of") in tip
        assert tip.count("“\u2068") == 6
        assert kind == f"s{sum(bits >= bound for bound in STEPS)}"


def test_a_passage_is_the_tokens_asked_for(pairs):
    whole, part = (tokens(drawn(*pairs, NASTY, first=first, stop=stop)[0]) for first, stop in ((0, None), (11, 25)))
    assert [one[2] for one in part] == [one[2] for one in whole[11:25]]
    assert [one[1].split("·")[1] for one in part] == [one[1].split("·")[1] for one in whole[11:25]]


def test_a_character_that_no_token_stands_for_is_shown_in_its_place():
    tokenizer = character_tokenizer([small_text()])
    markup, _ = drawn(small_model(vocab_size=tokenizer.vocab_size), tokenizer, "Ωthe Ωcat\u202eΩ")
    shown = [(kind.endswith("missing"), text) for kind, _, text in tokens(markup)]
    assert "".join(text for _, text in shown) == "Ωthe·Ωcat⟨U+202E⟩Ω"
    assert [text for missing, text in shown if missing] == ["Ω", "Ω", "⟨U+202E⟩", "Ω"]
    assert "cannot write this character: 30.0 bits" in markup


def test_an_end_of_text_within_a_passage_is_named_and_not_coloured(tmp_path):
    documents = [Document("a", small_text(195, seed=1)), Document("b", small_text(1805, seed=2))]
    tokenizer = character_tokenizer([document.text for document in documents])
    data = prepare(sources_of_texts(documents), tokenizer, tmp_path)
    model = small_model(vocab_size=tokenizer.vocab_size)
    scored = score_passages(model, tokenizer, data.held_out, escape_bits=30.0)
    markup = heat_map(model, tokenizer, scored[0], chosen_passages(scored)[0])
    assert markup.count("<small>&lt;|endoftext|&gt;</small>") == 1
    assert len(tokens(markup)) == 10


def luminance(colour):
    """Of a screen's colour, as the Web's guidelines define it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(
    ("colours", "inks", "strong", "sign"), [(LIGHT, INK, STRONG_LIGHT, -1), (DARK, DARK_INK, STRONG_DARK, 1)]
)
def test_the_scale_is_one_of_lightness_and_letters_can_be_read_on_all_of_it(colours, inks, strong, sign):
    assert len(colours) == len(STEPS) + 1
    steps = np.diff([luminance(colour) for colour in colours]) * sign
    assert (steps > 0).all()
    for step, colour in enumerate(colours):
        light, dark = sorted((luminance(colour), luminance(inks[step >= strong])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (step, colour)  # AA, for small letters


def test_the_legend_names_every_colour():
    assert re.findall(r'class="(s\d)"', legend()) == [f"s{step}" for step in range(len(STEPS) + 1)]
    assert "under 0.5 bits" in legend()
    assert "over 12 bits" in legend()
