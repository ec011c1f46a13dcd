import math

import pytest
import torch

from pellucid import presets
from pellucid.errors import GenerationError
from pellucid.generate import (
    WholeCharacters,
    decode,
    generate_naively,
    likeliest,
    sample,
    whole_characters,
    whole_text,
)
from pellucid.generate.stream import character_states
from pellucid.generate.whole_characters import among
from pellucid.generation_config import GenerationConfig
from pellucid.nn import TransformerLM
from pellucid.text import character_tokenizer, train_byte_pairs

INF = math.inf


@pytest.fixture(scope="module")
def bytes_only():
    return train_byte_pairs(["a"], 257)


def seen_after(tokenizer, text, logits=None):
    """The logits that are chosen from after some bytes."""
    seen = []
    script = [next(i for i in range(257) if tokenizer.token_bytes(i) == bytes([byte])) for byte in text]
    choose = WholeCharacters(
        character_states(tokenizer), lambda _, logits: seen.append(logits) or (script or [0]).pop(0)
    )
    for _ in range(len(text) + 1):
        choose(7, torch.zeros(257) if logits is None else logits)
    return seen[-1]


@pytest.mark.parametrize(
    ("before", "allowed"),
    [
        (b"a", {*range(0x80), *range(0xC2, 0xF5)}),
        (b"\xe0", {*range(0xA0, 0xC0)}),
        (b"\xe4", {*range(0x80, 0xC0)}),
        (b"\xe4\xb8", {*range(0x80, 0xC0)}),
        (b"\xe4\xb8\xad", {*range(0x80), *range(0xC2, 0xF5)}),
        (b"\xf4", {*range(0x80, 0x90)}),
    ],
)
def test_only_bytes_that_go_on_are_left(bytes_only, before, allowed):
    left = seen_after(bytes_only, before).isfinite()
    assert {bytes_only.token_bytes(i)[0] for i in left.nonzero()[:, 0].tolist() if bytes_only.token_bytes(i)} == allowed
    assert bool(left[bytes_only.end_of_text_id]) == (before in (b"a", b"\xe4\xb8\xad"))


def test_probabilities_are_the_models_own_among_what_may_come(bytes_only):
    logits = torch.randn(257, generator=torch.Generator().manual_seed(0))
    left = seen_after(bytes_only, b"\xe4", logits)
    kept = left.isfinite()
    expected = torch.where(kept, logits.softmax(0), 0)
    torch.testing.assert_close(left.softmax(0), expected / expected.sum())
    assert torch.equal(left[kept], logits[kept])


def test_if_nothing_that_may_come_has_a_chance_they_share_it(bytes_only):
    logits = torch.full((257,), -INF).index_fill(0, torch.tensor(5), 1.0)
    assert bytes_only.token_bytes(5) < b"\x80"
    left = seen_after(bytes_only, b"\xe4", logits)
    assert left.isfinite().sum() == 64
    assert sample(left, GenerationConfig(temperature=0.0), torch.Generator()) == likeliest(left)


@pytest.mark.parametrize("logits", [[math.nan] * 257, [INF] * 257, [-INF] * 257, [0.0] * 256 + [math.nan]])
def test_damaged_logits_are_still_a_sentence(bytes_only, logits):
    choose = WholeCharacters(
        character_states(bytes_only), lambda _, left: sample(left, GenerationConfig(), torch.Generator())
    )
    with pytest.raises(GenerationError, match="NaN or infinity"):
        choose(0, torch.tensor(logits))


def test_each_sequence_has_a_state_of_its_own(bytes_only):
    first, second = bytes_only.encode("é").tolist()
    seen = {}
    choose = WholeCharacters(character_states(bytes_only), lambda number, left: seen.update({number: left}) or first)
    choose(0, torch.zeros(257))
    choose(1, torch.zeros(257))
    assert seen[1][first] == 0
    choose(0, torch.zeros(257))
    assert (seen[0][first], seen[0][second]) == (-INF, 0)


def test_ids_past_the_tokenizers_end_are_not_chosen(bytes_only):
    assert among(torch.full((300,), 9.0), character_states(bytes_only).additions[0]).shape == (257,)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_number_types_are_as_in_sampling(bytes_only, dtype):
    left = among(torch.zeros(257, dtype=dtype), character_states(bytes_only).additions[0])
    assert left.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


def test_whole_characters_as_tokens_cost_nothing():
    tokenizer = character_tokenizer(["中文😀"])
    assert whole_characters(tokenizer, min) is min


@pytest.mark.parametrize("config", [GenerationConfig(temperature=0.0), GenerationConfig(temperature=3.0, top_k=50)])
def test_the_fast_decoder_and_the_naive_one_write_the_same_whole_characters(bytes_only, config):
    torch.manual_seed(3)
    shape = {"d_model": 32, "num_heads": 4, "num_layers": 1, "context_length": 12}
    model = TransformerLM(presets.default(vocab_size=257, **shape)).eval()
    prompt = bytes_only.encode("中 a").tolist()

    def choosing():
        stream = torch.Generator().manual_seed(2)
        return whole_characters(bytes_only, lambda _, logits: sample(logits, config, stream))

    fast = [token_id for _, token_id in decode(model, [prompt], choosing(), max_tokens=60)]
    choose = choosing()
    naive = generate_naively(model, prompt, lambda logits: choose(0, logits), 60)
    assert fast == naive
    assert "\ufffd" not in whole_text(bytes_only, fast)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"\xe4\xb8", ""),
        (b"a\xe4", "a"),
        ("中".encode() + b"\xf0\x9f\x98", "中"),
        ("a\ufffd".encode(), "a\ufffd"),
        ("a\ufffd".encode() + b"\xef\xbf", "a\ufffd"),
        (b"a\xff", "a\ufffd"),
    ],
)
def test_only_the_beginning_of_a_character_is_left_out_at_the_end(bytes_only, data, text):
    ids = {bytes_only.token_bytes(token_id): token_id for token_id in range(257)}
    assert whole_text(bytes_only, [ids[bytes([byte])] for byte in data]) == text
