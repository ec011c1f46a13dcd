"""How long opening a model takes, and how much memory: of a Hugging Face folder, a GGUF file, a run.

    python benchmarks/opening.py MODEL...

Each model is opened in a process of its own, some times; the best is shown. Importing torch is not counted, nor its
memory. Reading the file's bytes once, into memory of one's own, is shown beside: no opening can take less.

In: models.  Out: lines with seconds and memory.  Used by: people (docs/log.md).
"""

import json
import subprocess
import sys
from pathlib import Path

TIMES = 3

OPEN = """
import json, sys, time, torch
torch.ones(3).add(1)
status = lambda name: int(next(line for line in open("/proc/self/status") if line.startswith(name)).split()[1]) * 1024
before = status("VmHWM")
begun = time.perf_counter()
import pellucid.loading
imported = time.perf_counter()
model = pellucid.loading.load(sys.argv[1]).model
opened = time.perf_counter()
weights = sum(one.nbytes for one in {id(one): one for one in model.parameters()}.values())
told = {"import": imported - begun, "open": opened - imported, "peak": status("VmHWM") - before, "weights": weights}
print(json.dumps(told))
"""

READ = """
import sys, time, torch
begun = time.perf_counter()
for path in sys.argv[1:]:
    with open(path, "rb", buffering=0) as file:
        memory = torch.empty(file.seek(0, 2), dtype=torch.uint8).numpy()
        file.seek(0)
        file.readinto(memory)
print(time.perf_counter() - begun)
"""


def told(code: str, *words: str) -> float | dict[str, float]:
    made = subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True, text=True)
    return json.loads(made.stdout.splitlines()[-1])


def main() -> None:
    for word in sys.argv[1:]:
        path = Path(word)
        files = [str(path)] if path.is_file() else [str(one) for one in sorted(path.glob("*.safetensors"))]
        reading = min(told(READ, *files) for _ in range(TIMES))
        best = min((told(OPEN, word) for _ in range(TIMES)), key=lambda one: one["open"])
        share, seconds = best["peak"] / best["weights"], best["open"]
        print(f"{word}: {seconds:.2f} s, of which reading its bytes {reading:.2f} s; import {best['import']:.2f} s")
        peak, weights = best["peak"] / 1e6, best["weights"] / 1e6
        print(f"    peak {peak:,.0f} MB above torch's own, {share:.2f} times the {weights:,.0f} MB of weights")


if __name__ == "__main__":
    main()
