"""How fast `pellucid prepare` is, beside the tokenizers library's own batch encoding on the same cores.

    python benchmarks/prepare.py [CHARACTERS]

Both are run in turns, so that a neighbour slows both. Ours is the whole command but for the start of Python: reading,
counting, encoding, writing to the disk. Theirs is `encode_batch` alone on a text in memory, and `encode_batch_fast`,
which leaves out what training does not need. Beside other work the CPU time says more than the clock.
"""

import os
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from pellucid.data import builtin_corpus, open_sources, prepare_folder
from pellucid.text import train_byte_pairs

DEFAULT_CHARACTERS = 20_000_000
ROUNDS = 3
TEXTS_CHARACTERS = 50_000  # of a text that the library gets; longer ones share its threads badly


def lines(characters: int, seed: int = 0) -> str:
    """English words in lines that hardly repeat."""
    dice = random.Random(seed)
    words = "".join(piece.text for piece in builtin_corpus().pieces()).split()
    found = []
    while characters > 0:
        found.append(" ".join(dice.choices(words, k=12)) + f" {dice.randrange(10**6)}\n")
        characters -= len(found[-1])
    return "".join(found)


def cpu_seconds() -> float:
    """CPU time of this process, and of children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    """Run the benchmark."""
    characters = int(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_CHARACTERS
    cores = len(os.sched_getaffinity(0))
    text = lines(characters)
    tokenizer = train_byte_pairs([text], 4096)
    library = tokenizer._library
    texts = [text[start : start + TEXTS_CHARACTERS] for start in range(0, len(text), TEXTS_CHARACTERS)]
    rates: dict[str, list[float]] = {"encode_batch": [], "encode_batch_fast": [], "pellucid prepare": []}
    cpu: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "text.txt").write_text(text, encoding="utf-8")
        for number in range(ROUNDS):
            for name in rates:
                begun, cpu_begun = time.perf_counter(), cpu_seconds()
                if name == "pellucid prepare":
                    sources = open_sources([Path(folder, "text.txt")])
                    out = Path(folder, str(number))
                    prepare_folder(sources, out, lambda _: (tokenizer, ""), names=["x"], asked={}, processes=cores)
                else:
                    getattr(library, name)(texts, add_special_tokens=False)
                rates[name].append(len(text) / 1e6 / (time.perf_counter() - begun))
                cpu[name] = min(cpu.get(name, 1e9), cpu_seconds() - cpu_begun)
            print(f"round {number + 1}: " + ", ".join(f"{name} {rate[-1]:.2f}" for name, rate in rates.items()))
    best = {name: max(rate) for name, rate in rates.items()}
    print(f"{len(text):,} characters on {cores} cores, million characters/s, the best of {ROUNDS} rounds:")
    for name, rate in best.items():
        share = best["pellucid prepare"] / rate
        print(f"  {name:<18}{rate:6.2f}   prepare is {share:.2f} of it; CPU {cpu[name]:.1f} s")


if __name__ == "__main__":
    main()
