"""`pellucid generate RUN [PROMPT]`: lets a model go on from a prompt, and shows the text as it is written.

The text goes to standard output, prompt included, and what is to be said about it (the seed, why it ended) to standard
error. On a terminal as elsewhere it comes in whole graphemes: a letter waits for its marks. With --json there is one
object for each text on standard output, and the text in it is the model's own.

In: flags.  Out: text.  Used by: main.  Read next: tokens.py.
"""

import dataclasses
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import tyro

import pellucid
from pellucid.cli.arguments import parse, text_argument, text_from_stdin
from pellucid.cli.printable import PrintableStream, printable, printable_json
from pellucid.generation_config import GenerationConfig, Precision

if TYPE_CHECKING:
    from pellucid.generate import Completion, Writing


@dataclass(kw_only=True)
class GenerateFlags:
    """Let a model go on from a prompt. Text is shown as it is written, its control characters made visible."""

    run: tyro.conf.Positional[str]
    """The folder that `pellucid train` wrote, a Hugging Face folder, or a GGUF file."""
    prompt: tyro.conf.Positional[str] = ""
    """Text to go on from, or - to read it from standard input. Default: the beginning of a document."""
    generation: tyro.conf.OmitArgPrefixes[GenerationConfig] = field(default_factory=GenerationConfig)
    """How tokens are chosen (temperature, then top-k, then top-p, then min-p), and when to stop."""
    precision: Precision = "auto"
    """What the weights are held in; auto: as they are stored. int8 is the fastest, and a little less exact."""
    own_code: bool = False
    """Run the code in the model's own_parts/, if it was made with parts that somebody wrote; read it first."""
    json: bool = False
    """One JSON object a line for each text, with its seed, token counts and why it ended."""


def main(words: Sequence[str]) -> None:
    """Run the verb."""
    flags = parse(GenerateFlags, words, "generate")
    prompt = text_from_stdin() if flags.prompt == "-" else text_argument(flags.prompt)
    config = dataclasses.replace(flags.generation, stop=tuple(map(text_argument, flags.generation.stop)))
    loaded = pellucid.load(flags.run, own_code=flags.own_code, precision=flags.precision)
    writing = loaded.writing([prompt], config=config)
    for sentence in (*loaded.notes, *loaded.told(prompt)):
        print(printable(sentence), file=sys.stderr)
    if flags.json:
        for _ in writing:
            pass
        for completion in writing.completions:
            print(printable_json(as_json(completion)))
        return
    _tell_dropped(writing)
    begun = time.perf_counter()
    try:
        for text in _texts(writing):
            print(text, end="", flush=True)
    finally:
        _tell_how(writing, time.perf_counter() - begun)


def as_json(completion: "Completion") -> dict[str, Any]:
    """What --json says of one text."""
    return {
        "prompt": completion.prompt,
        "text": completion.text,
        "seed": completion.seed,
        "finish_reason": completion.finish_reason,
        "prompt_tokens": len(completion.prompt_ids),
        "dropped_tokens": completion.num_dropped,
        "completion_tokens": len(completion.token_ids),
    }


def _texts(writing: "Writing"):
    """What is printed: the first text as it is written, by graphemes; the others, written beside it, after it."""
    first, *others = writing.completions
    screen = PrintableStream()
    yield _heading(writing, 0) + _marked(screen.push(first.prompt))
    for number, chunk in writing.whole_graphemes():
        if number == 0:
            yield screen.push(chunk)
    yield screen.finish() + "\n"
    for number, completion in enumerate(others, 1):
        screen = PrintableStream()
        yield _heading(writing, number) + _marked(screen.push(completion.prompt))
        yield screen.push(completion.text) + screen.finish() + "\n"


def _heading(writing: "Writing", number: int) -> str:
    if len(writing.completions) == 1:
        return ""
    return f"--- {number + 1} of {len(writing.completions)}, seed {writing.completions[number].seed}\n"


def _marked(shown: str) -> str:
    """The prompt, bold on a terminal, so that one sees where the model begins."""
    return f"\x1b[1m{shown}\x1b[0m" if shown and sys.stdout.isatty() and not os.environ.get("NO_COLOR") else shown


def _tell_dropped(writing: "Writing") -> None:
    dropped, kept = writing.completions[0].num_dropped, len(writing.completions[0].prompt_ids)
    if dropped:
        print(f"The first {dropped} tokens of the prompt were dropped; the model reads {kept}.", file=sys.stderr)


def _tell_how(writing: "Writing", seconds: float) -> None:
    written = sum(len(completion.token_ids) for completion in writing.completions)
    ended = "the text ended, or a stop text came" if writing.config.stop else "the text ended"
    reasons = {"stop": ended, "length": "max-tokens reached", None: "interrupted"}
    why = sorted({reasons[completion.finish_reason] for completion in writing.completions})
    rate = f", {written / seconds:.0f} tokens/s" if seconds > 0 else ""
    print(f"[seed {writing.config.seed} · {written} tokens{rate} · {' or '.join(why)}]", file=sys.stderr)
