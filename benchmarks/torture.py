"""Kill a run again and again at random moments; at its end it must be, bit for bit, the run that was left alone.

    python benchmarks/torture.py --kills 200        (as `make torture`)

Each life of the run is ended by SIGKILL, SIGTERM or SIGINT after a random time, from its first imports to its last
file; during a save too, since saves are made as frequent as steps allow. After every death the newest checkpoint must
load, no half-made one may bear a name, and what was told must be told once. (Power
cuts are in tests/whole/test_torture.py.)

In: a number of kills, a seed.  Out: one line a life, and a verdict; exit code 1 if anything differs.  Used by: people.
"""

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from pellucid.checkpoint import RunFolder
from pellucid.errors import PellucidError

SENTENCE = "the cat sat on a mat and old men sang songs of sea sky while dogs ran to see it"
REFUSED = 2  # a run that was killed after its last line has nothing left to do, and says so
TIMES = {"seconds", "tokens_per_second", "training_seconds", "seconds_left", "step_seconds", "planned_step_seconds"}
FLAGS = (
    "--tokenizer char --compile off --precision float32 --threads 2 --batch-size 6 --micro-batch-size 4 --keep 1"
    " --model.d-model 64 --model.num-heads 2 --model.num-layers 2 --model.context-length 32 --model.dropout 0.2"
    " --ema 0.9"
)


def main() -> int:
    """Torture a run; 0 if it ends as if nothing had happened."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    arguments.add_argument("--kills", type=int, default=30)
    arguments.add_argument("--steps", type=int, default=60)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--life", type=float, default=9.0, help="seconds that a life lasts at most")
    arguments.add_argument("--train", default="", help="more flags for pellucid train, such as '--compile on'")
    chosen = arguments.parse_args()
    draw = random.Random(chosen.seed)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # where a shell has it ignored, every life would ignore it
    with tempfile.TemporaryDirectory() as place:
        text = Path(place, "words.txt")
        text.write_text(" ".join(draw.choice(SENTENCE.split()) for _ in range(2000)), encoding="utf-8")
        evaluations = max(1, chosen.steps // 4)
        flags = [
            str(text),
            *f"{FLAGS} --steps {chosen.steps} --evaluations {evaluations}".split(),
            *chosen.train.split(),
        ]
        alone, tortured = Path(place, "alone"), Path(place, "tortured")
        live(flags, alone, None, 0)
        runs, wrong, dead = 0, [], 0
        while dead < chosen.kills and not wrong:
            dead += torture(flags, tortured, draw, chosen.kills - dead, chosen.life)
            live(flags, tortured, None, 0)
            runs, wrong = runs + 1, differences(RunFolder.open(alone), RunFolder.open(tortured))
            shutil.rmtree(tortured)
    verdict = "bit-identical" if not wrong else "; ".join(wrong)
    print(f"{dead} deaths, {runs} runs of {chosen.steps} steps each: {verdict}.")
    return bool(wrong)


def torture(flags: list[str], out: Path, draw: random.Random, kills: int, life: float) -> int:
    """End as many lives of a run, fewer if it reaches its end before that; says how many."""
    dead = 0
    while dead < kills:
        number = draw.choice([signal.SIGKILL] * 4 + [signal.SIGTERM, signal.SIGINT])
        code = live(flags, out, number, draw.uniform(0.2, life))
        dead += code not in (0, REFUSED)
        step = check(out)
        print(f"{dead:4} {signal.Signals(number).name:8} exit {code:4}, saved at step {step}", flush=True)
        if code in (0, REFUSED):
            return dead
    return dead


def live(flags: list[str], out: Path, number: int | None, seconds: float) -> int:
    """Run until it ends, or is ended after some seconds."""
    command = [sys.executable, "-m", "pellucid", "train", *flags, "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if number is not None:
        deadline = time.monotonic() + seconds
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if process.poll() is None:
            process.send_signal(number)
    _, errors = process.communicate()
    if "Traceback" in errors or "went wrong" in errors:
        raise SystemExit(f"a life ended with an error of ours:\n{errors}")
    return process.returncode


def check(out: Path) -> int:
    """After a death: every checkpoint that bears a name loads; gives the newest's step."""
    if not (out / "run.json").exists():
        return 0
    folder, steps = RunFolder.open(out), [0]
    for path in sorted(folder.checkpoints_path.glob("step-*")):
        try:
            steps.append(folder.load_checkpoint(path).step)
        except PellucidError as error:
            raise SystemExit(f"a checkpoint that bears a name does not load: {error}") from error
    return max(steps)


def differences(alone: RunFolder, tortured: RunFolder) -> list[str]:
    """What is not the same in two runs, times aside."""
    wrong = []
    here, there = (folder.load_checkpoint(folder.latest_checkpoint() or "") for folder in (alone, tortured))
    for kind in ("model", "optimizer"):
        expected, found = getattr(here, kind), getattr(there, kind)
        names = [name for name in expected | found if name not in found or not torch.equal(expected[name], found[name])]
        wrong += [f"{kind} {name} differs" for name in names]
    if here.state != there.state:
        wrong.append("the state differs")
    kept, found = (folder.load_model().state_dict() for folder in (alone, tortured))
    wrong += [f"model.safetensors: {name} differs" for name in kept if not torch.equal(kept[name], found[name])]
    if timeless(alone) != timeless(tortured):
        wrong.append("the metrics differ")
    return wrong


def timeless(folder: RunFolder) -> list[dict]:
    """The steps and evaluations that were told, without what a clock says."""
    told = [
        event for event in folder.metrics() if event["event"] in ("StepDone", "Evaluated", "Sampled", "ModuleHealth")
    ]
    return [{name: value for name, value in event.items() if name not in TIMES} for event in told]


if __name__ == "__main__":
    sys.exit(main())
