"""`pellucid bench train`: how fast a training step is here, against a plain torch.nn loop; `bench generate` is beside.

In: flags.  Out: a table, or JSON.  Used by: main.  Read next: bench_generate.py.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pellucid.cli import bench_generate
from pellucid.cli.arguments import parse
from pellucid.cli.train_flags import ModelFlags, given
from pellucid.cli.values import WholeNumber
from pellucid.errors import UserError
from pellucid.pages.quantities import counted

if TYPE_CHECKING:
    from pellucid.bench import SpeedReport, SpeedRow, TrainingLoad
    from pellucid.train.variant import Variant

SIZES = {  # what `train` makes of 1 MB of text; and the GPT-2 that people train on a laptop (docs/log.md)
    "default": {"num_layers": 4, "d_model": 192, "num_heads": 6, "context_length": 256, "vocab_size": 1024},
    "gpt2": {"num_layers": 4, "d_model": 128, "num_heads": 4, "context_length": 64, "vocab_size": 65},
}
BATCH_SIZES = {"default": 16, "gpt2": 12}


@dataclass(kw_only=True)
class BenchTrainFlags:
    """Measure a training step: the plain torch.nn loop, each variant of ours, and the one the planner chooses.

    Everyone takes turns, round after round, so that a busy machine is unfair to nobody: trust the ratios.
    """

    preset: Literal["gpt2", "default"] = "gpt2"
    """gpt2: compared with a plain loop over torch.nn's layers; default: with its own eager float32 step."""
    model: ModelFlags = field(default_factory=ModelFlags)
    """Fields of the model; what is not given is small."""
    context: WholeNumber = None
    """Tokens of a row; short for --model.context-length."""
    batch: WholeNumber = None
    """Rows of a step."""
    vocab: WholeNumber = None
    """Token ids."""
    steps: int = 60
    """Timed steps of each contender."""
    peers: bool = False
    """Measure more contenders: both attention paths, and the plain loop with every switch of torch's on."""
    json: bool = False
    """The report as JSON, and nothing else, on standard output."""


def main(words: Sequence[str]) -> int:
    """Run the verb."""
    if words[:1] == ["generate"]:
        return bench_generate.main(words[1:])
    if words[:1] not in (["train"], ["-h"], ["--help"]):
        raise UserError(
            "what to measure: train or generate",
            came=repr(words[0]) if words else "nothing",
            remedy="say pellucid bench train, or pellucid bench generate MODEL",
        )
    if words[0] != "train":
        print("pellucid bench generate MODEL measures how a model writes; pellucid bench train:\n")
    flags = parse(BenchTrainFlags, words[1:] if words[0] == "train" else words, "bench train")
    for name, value in (("steps", flags.steps), ("batch", flags.batch)):
        if value is not None and value < 1:
            raise UserError(f"--{name} of 1 or more", came=str(value), remedy=f"choose another --{name}")
    from pellucid.bench import bench_train

    say = _whisper if not flags.json else lambda text: None
    report = bench_train(
        training_load(flags),
        variants=variants(flags),
        steps=flags.steps,
        peers=flags.peers,
        say=say,
    )
    print(json.dumps(report.as_json()) if flags.json else "\n".join(lines(report)))
    return 0 if all(row.agrees for row in report.rows) else 1


def training_load(flags: BenchTrainFlags) -> "TrainingLoad":
    """What is to be measured."""
    from pellucid import presets
    from pellucid.bench import TrainingLoad, adamw
    from pellucid.training_config import OptimizerConfig

    given_short = {"context_length": flags.context, "vocab_size": flags.vocab}
    sizes = SIZES[flags.preset] | {"dropout": 0.0} | given(flags.model)
    sizes |= {name: value for name, value in given_short.items() if value is not None}
    make = {"gpt2": presets.gpt2, "default": presets.default}[flags.preset]
    return TrainingLoad(
        config=make(**sizes),
        batch_size=flags.batch or BATCH_SIZES[flags.preset],
        optimizer=adamw() if flags.preset == "gpt2" else OptimizerConfig(),
        initialization="gpt2" if flags.preset == "gpt2" else "zero-output",
    )


def variants(flags: BenchTrainFlags) -> list["Variant"]:
    """Ours: each number type, eager and compiled; eager float32 leads where there is no plain loop."""
    from pellucid.train.trial import attention_path
    from pellucid.train.variant import Variant

    usual = attention_path(training_load(flags).config.context_length)
    others = [path for path in ("written-out", "fused") if flags.peers and path != usual]
    return [
        Variant(precision=precision, attention=attention, compiled=compiled)
        for compiled in (False, True)
        for precision in ("float32", "bfloat16")
        for attention in (usual, *others)
    ]


def lines(report: "SpeedReport") -> list[str]:
    """The report for people."""
    sizes, first = report.sizes, report.rows[0]
    head = (
        f"{counted(sizes['num_layers'], 'layer')} × {sizes['d_model']}, {counted(sizes['num_heads'], 'head')}, context"
        f" {sizes['context_length']}, batch {sizes['batch_size']}, vocabulary {sizes['vocab_size']}:"
        f" {report.flop_per_step / 1e9:.1f} GFLOP a step, {counted(report.threads, 'thread')}"
    )
    ceilings = ", ".join(f"{kind} {rate / 1e9:,.0f}" for kind, rate in report.ceilings.items())
    table = [f"{'':<42}{'speed':>7}{'ms/step':>9}{'tokens/s':>10}{'GFLOP/s':>9}{'ceiling':>9}{'memory':>9}{'first':>8}"]
    table += [_line(row) for row in report.rows]
    planned = report.planned
    best = max(report.rows, key=lambda row: row.ratio)
    verdict = f"The planner chooses {planned.name}: {planned.ratio:.2f} times {first.name}" + (
        "." if best is planned else f"; {best.name} was {best.ratio / planned.ratio:.2f} times faster still."
    )
    return [head, f"ceilings, a large matrix product: {ceilings} GFLOP/s", *table, verdict]


def _line(row: "SpeedRow") -> str:
    if row.refused:
        return f"{row.name:<42}refused: {row.refused}"
    first = f"{row.first_step_seconds:.1f} s" if row.first_step_seconds else ""
    notes = "  ◀ the planner's" if row.planned else ""
    notes += "" if row.agrees else f"  loss {row.loss:.4f}: not the first row's"
    speed = f"{row.ratio:>6.2f}×{1e3 * row.step_seconds:>9.1f}{row.tokens_per_second:>10,.0f}"
    share = f"{row.flop_per_second / 1e9:>9,.0f}{row.share_of_ceiling:>9.0%}"
    return f"{row.name:<42}{speed}{share}{row.peak_bytes / 1e6:>6,.0f} MB{first:>8}{notes}"


def _whisper(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
