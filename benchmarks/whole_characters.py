"""What it costs to write whole characters only, beside what it costs to write at all.

    OMP_NUM_THREADS=1 python benchmarks/whole_characters.py

The model is the default recipe's for a text of 1 MB: 4 layers of 192, 1,024 byte pairs, context 256. The mask costs a
few microseconds in a millisecond, less than two runs of the same thing differ on a machine with neighbours. So each is
timed by itself, on the same logits, in short turns one after the other, and what counts is the fastest turn of each.
Then the making of the tables for a vocabulary of 50,000 tokens, which happens once.

In: nothing.  Out: a few lines.  Used by: whoever changes decoding.
Read next: src/pellucid/generate/whole_characters.py.
"""

import time
from pydoc_data.topics import topics

import torch

from pellucid import presets
from pellucid.generate import decode, sample, whole_characters
from pellucid.generate.stream import character_states
from pellucid.generation_config import GenerationConfig
from pellucid.nn import TransformerLM
from pellucid.text import byte_pair_tokenizer, train_byte_pairs

TURNS, TOKENS = 200, 50


def microseconds(act, number):
    begun = time.perf_counter()
    for _ in range(number):
        act()
    return (time.perf_counter() - begun) / number * 1e6


def main():
    torch.manual_seed(0)
    tokenizer = train_byte_pairs(topics.values(), 1024)
    sizes = {"d_model": 192, "num_layers": 4, "num_heads": 6, "context_length": 256}
    model = TransformerLM(presets.default(vocab_size=1024, **sizes)).eval()
    config, stream = GenerationConfig(temperature=1.0), torch.Generator().manual_seed(0)
    prompt, logits = tokenizer.encode("The").tolist(), torch.randn(1024)

    def choose(number, logits):
        return sample(logits, config, stream)

    masked = whole_characters(tokenizer, choose)
    turns = {
        "decoding a token, all of it": lambda: list(decode(model, [prompt], choose, max_tokens=TOKENS)),
        "choosing, raw": lambda: [choose(0, logits) for _ in range(TOKENS)],
        "choosing, whole characters": lambda: [masked(0, logits) for _ in range(TOKENS)],
    }
    fastest = dict.fromkeys(turns, float("inf"))
    for _ in range(TURNS):
        for name, act in turns.items():
            fastest[name] = min(fastest[name], microseconds(act, 1) / TOKENS)
    for name, taken in fastest.items():
        print(f"{name:<28} {taken:8.1f} us")
    everything, raw, whole = fastest.values()
    print(f"{'the mask':<28} {whole - raw:8.1f} us, {(whole - raw) / everything:.2%} of decoding")

    vocabulary = {i: bytes([i]) for i in range(256)}
    vocabulary |= {256 + i: f"{i:x}é中".encode()[:8] for i in range(50_000 - 257)}
    large = byte_pair_tokenizer({**vocabulary, 49_999: b"<|endoftext|>"}, [])
    begun = time.perf_counter()
    character_states(large)
    print(f"tables for {large.vocab_size:,} tokens, once: {time.perf_counter() - begun:.3f} s")


if __name__ == "__main__":
    main()
