"""Eight texts side by side against one alone, and what guesses bring: tokens a second in all.

    python benchmarks/streams.py MODEL [--precision float32|bfloat16|int8] [--streams 8] [--new-tokens 100]

Prompts are of different lengths; each text must be, to the letter, what it is alone.

In: a model.  Out: lines.  Used by: people (docs/log.md).
"""

import argparse
import time
from statistics import median

import torch

import pellucid
from pellucid.data import builtin_corpus, training_texts
from pellucid.generate import decode, likeliest


def write(model, prompts, new_tokens, most_guessed=0):
    """Ids of each prompt, and the seconds after the first of all."""
    written, begun = [[] for _ in prompts], 0.0
    steps = decode(
        model, prompts, lambda _, logits: likeliest(logits), max_tokens=new_tokens, most_guessed=most_guessed
    )
    for number, token_id in steps:
        begun = begun or time.perf_counter()
        written[number].append(token_id)
    return written, time.perf_counter() - begun


def main():
    words = argparse.ArgumentParser()
    words.add_argument("model")
    words.add_argument("--precision", default="auto")
    words.add_argument("--streams", type=int, default=8)
    words.add_argument("--new-tokens", type=int, default=100)
    words.add_argument("--rounds", type=int, default=5)
    asked = words.parse_args()
    loaded = pellucid.load(asked.model, precision=asked.precision)
    ids = loaded.tokenizer.encode("".join(training_texts(builtin_corpus()))[:20_000]).tolist()
    prompts = [ids[97 * row : 97 * row + 20 + 17 * row] for row in range(asked.streams)]
    rates, guessed = [], []
    for _ in range(asked.rounds):
        alone, seconds = write(loaded.model, prompts[:1], asked.new_tokens)
        together, all_seconds = write(loaded.model, prompts, asked.new_tokens)
        same, guess_seconds = write(loaded.model, prompts[:1], asked.new_tokens, most_guessed=3)
        assert together[0] == alone[0] == same[0], "a text is another in company, or with guesses"
        rates.append(asked.streams * seconds / all_seconds)
        guessed.append(seconds / guess_seconds)
    for prompt, text in zip(prompts[1:], together[1:], strict=True):
        assert write(loaded.model, [prompt], asked.new_tokens)[0] == [text]
    print(f"{asked.streams} streams of {asked.precision}, {torch.get_num_threads()} threads:")
    print(f"    {median(rates):.2f} times the tokens a second of one, each text the same as alone")
    print(f"    one stream with guesses: {median(guessed):.2f} times as fast, the same text")


if __name__ == "__main__":
    main()
