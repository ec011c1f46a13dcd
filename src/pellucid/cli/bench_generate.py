"""`pellucid bench generate MODEL`: how fast a model writes here, alone and beside its peers.

In: flags.  Out: a table, or JSON.  Used by: bench.py.  Read next: ../bench/generate_speed.py.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from pellucid.cli.arguments import parse
from pellucid.cli.printable import printable
from pellucid.errors import UserError
from pellucid.generation_config import Precision
from pellucid.pages.quantities import counted

if TYPE_CHECKING:
    from pellucid.bench import GenerateReport, GenerateRow


@dataclass(kw_only=True)
class BenchGenerateFlags:
    """Measure how fast a model reads a prompt and writes: greedily, one stream, without guesses.

    With --against, peers that are installed write from the same weights and the same prompt, with as many threads, turn
    by turn: trust the ratios.
    """

    model: tyro.conf.Positional[str]
    """A run's folder, a Hugging Face model's folder, or a GGUF file."""
    prompt_tokens: int = 400
    """Tokens of the prompt."""
    new_tokens: int = 100
    """Tokens that are written."""
    precision: Precision = "auto"
    """What the weights are held in; peers have the nearest they know."""
    against: str = ""
    """Peers, separated by commas: transformers, llama.cpp."""
    rounds: int = 5
    """How often everyone has a turn."""
    json: bool = False
    """The report as JSON, and nothing else, on standard output."""


def main(words: Sequence[str]) -> int:
    """Run the verb."""
    flags = parse(BenchGenerateFlags, words, "bench generate")
    if flags.rounds < 1:
        raise UserError("--rounds of 1 or more", came=str(flags.rounds), remedy="choose another --rounds")
    from pellucid.bench import bench_generate

    report = bench_generate(
        Path(flags.model),
        prompt_tokens=flags.prompt_tokens,
        new_tokens=flags.new_tokens,
        precision=flags.precision,
        against=[peer.strip() for peer in flags.against.split(",") if peer.strip()],
        rounds=flags.rounds,
        say=(lambda text: None) if flags.json else _whisper,
    )
    print(json.dumps(report.as_json()) if flags.json else "\n".join(map(printable, lines(report))))
    return 0


def lines(report: "GenerateReport") -> list[str]:
    """The report for people."""
    rate = report.bandwidth_bytes_per_second / 1e9
    head = (
        f"{report.parameters / 1e6:,.1f} M parameters, {report.prompt_tokens} tokens read, {report.new_tokens} written,"
        f" {counted(report.threads, 'thread')}, medians of {report.rounds} rounds; memory is read at {rate:.0f} GB/s"
    )
    names = f"{'':<24}{'prefill':>10}{'decode':>10}{'first':>9}{'a token':>10}{'of memory':>11}{'peak':>9}{'opened':>8}"
    rows = [_line(row) for row in report.rows]
    verdicts = [
        f"Ours reads {row.prefill_ratio:.2f} times as fast as {row.writer} in {row.precision}, and writes"
        f" {row.decode_ratio:.2f} times as fast; {_alike(row, report)}"
        for row in report.rows[1:]
    ]
    return [head, names, *rows, *verdicts]


def _line(row: "GenerateRow") -> str:
    return (
        f"{row.writer + ', ' + row.precision:<24}{row.prefill_tokens_per_second:>6,.0f}/s{'':>2}"
        f"{row.decode_tokens_per_second:>6,.1f}/s{'':>2}{row.first_token_seconds:>5.3g} s{'':>2}"
        f"{row.bytes_per_token / 1e6:>5,.0f} MB{'':>2}{row.share_of_bandwidth:>8.0%}{'':>3}"
        f"{row.peak_bytes / 1e6:>5,.0f} MB{'':>2}{row.opening_seconds:>5.2f} s"
    )


def _alike(row: "GenerateRow", report: "GenerateReport") -> str:
    if row.same_tokens == report.new_tokens:
        return "both write the same tokens."
    return f"the first {row.same_tokens} tokens of {report.new_tokens} are the same."


def _whisper(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)
