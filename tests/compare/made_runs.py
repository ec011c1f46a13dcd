"""Run folders written by hand, so that a comparison's figures are known beforehand."""

import json
from dataclasses import asdict

from pellucid.model_config import ModelConfig
from pellucid.training_config import OptimizerConfig, ScheduleConfig, TrainingConfig

CHARACTERS = (100, 100, 100, 100)
SIZES = {"vocab_size": 10, "context_length": 8, "d_model": 4, "num_layers": 2, "num_heads": 2}


def made_run(path, *, seed=0, bits=(200.0, 210.0, 190.0, 205.0), text="a" * 64, tokenizer="b" * 64, **changes):
    """A finished run of 10 steps, scored at steps 5 and 10, the second time with `bits` on four passages."""
    changes = {"model": {}, "events": None, "characters": CHARACTERS, "rate": 100.0, "optimizer": {}} | changes
    model = asdict(ModelConfig(**SIZES | changes["model"]))
    facts = {
        "seed": seed,
        "data": {"name": "book.txt", "fingerprint": text, "held_out": {"kind": "passages", "percent": 5}},
        "config": {
            "schedule": asdict(ScheduleConfig()),
            "initialization": "zero-output",
            "training": asdict(TrainingConfig(steps=10, seed=seed)),
        },
        "tokenizer": {"kind": "characters", "vocab_size": 10, "fingerprint": tokenizer},
        "yardsticks": {"chance": 6.0, "best_ngram": 2.5, "best_ngram_name": "4-gram"},
        "plan": {
            "model": model,
            "parameters": 240,
            "batch_size": 2,
            "tokens_per_step": 16,
            "steps": 10,
            "variant": "float32, written-out attention, eager",
            "device": "cpu",
            "optimizer": asdict(OptimizerConfig(**changes["optimizer"])),
        },
    }
    events = changes["events"]
    if events is None:
        early = [2 * one for one in bits]
        events = [
            *steps(1, 5, changes["rate"]),
            evaluated(5, early, changes["characters"], changes["rate"]),
            *steps(6, 10, changes["rate"]),
            evaluated(10, bits, changes["characters"], changes["rate"]),
            {"event": "Finished", "completed": True},
        ]
    path.mkdir(parents=True)
    (path / "run.json").write_text(json.dumps(facts), encoding="utf-8")
    (path / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    return path


def steps(first, last, rate=100.0, *, skipped=False):
    """StepDone events."""
    return [
        {"event": "StepDone", "step": step, "tokens_per_second": rate, "skipped": skipped}
        for step in range(first, last + 1)
    ]


def evaluated(step, bits, characters=CHARACTERS, rate=100.0, *, is_best=True):
    """An Evaluated event."""
    return {
        "event": "Evaluated",
        "step": step,
        "held_out": sum(bits) / sum(characters),
        "standard_error": 0.05,
        "is_best": is_best,
        "tokens_per_second": rate,
        "passage_bits": list(bits),
        "passage_characters": list(characters),
    }
