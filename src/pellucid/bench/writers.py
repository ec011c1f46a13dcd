"""Who writes in a measurement: pellucid, `transformers` and llama.cpp, each in a process of its own.

Each reads the same prompt and goes on from it greedily, as many tokens as it is told; the time until the first token
and the time of those after it are taken apart. A peer's keys, threads and batch are what its own manual advises.

In: files, a prompt as ids.  Out: seconds, ids, memory.  Used by: generate_speed.  Read next: generate_speed.py.
"""

import importlib
import multiprocessing
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

import torch

from pellucid.errors import PellucidError
from pellucid.generate import decode, sample
from pellucid.generation_config import GenerationConfig

PELLUCID, TRANSFORMERS, LLAMA_CPP = "pellucid", "transformers", "llama.cpp"
PACKAGES = {TRANSFORMERS: "transformers", LLAMA_CPP: "llama_cpp"}
"""What has to be installed for each peer."""


@dataclass(frozen=True)
class Written:
    """What came of one prompt."""

    first_seconds: float
    """Until the first token was chosen: reading the prompt."""
    rest_seconds: float
    """For each token after it."""
    token_ids: tuple[int, ...]


@dataclass(frozen=True)
class Job:
    """Which writer, and what it opens."""

    writer: str
    path: str
    precision: str
    threads: int
    num_positions: int


class Writer(Protocol):
    """A model that goes on from a prompt."""

    def write(self, prompt: list[int], new_tokens: int) -> Written:
        """Write greedily."""
        ...


class OurWriter:
    """Pellucid, without guesses, which would make a measurement a matter of the text."""

    def __init__(self, job: Job) -> None:
        loading = importlib.import_module("pellucid.loading")
        self.model = loading.load(job.path, precision=job.precision).model
        self.greedy = GenerationConfig(temperature=0.0)

    def write(self, prompt: list[int], new_tokens: int) -> Written:
        """Write greedily."""
        stream, token_ids, times = torch.Generator(), [], [time.perf_counter()]

        def choose(_: int, logits: torch.Tensor) -> int:
            return sample(logits, self.greedy, stream)

        for _, token_id in decode(self.model, [prompt], choose, max_tokens=new_tokens, most_guessed=0):
            token_ids.append(token_id)
            times.append(time.perf_counter())
        return _written(times, token_ids)


class TransformersWriter:
    """`transformers`: its own `generate`, with its own cache."""

    def __init__(self, job: Job) -> None:
        library: Any = importlib.import_module("transformers")
        library.utils.logging.disable_progress_bar()
        self.model = library.AutoModelForCausalLM.from_pretrained(job.path, dtype=getattr(torch, job.precision))

    def write(self, prompt: list[int], new_tokens: int) -> Written:
        """Write greedily."""
        times = _Times(time.perf_counter())
        ids = torch.tensor([prompt])
        with torch.inference_mode():
            made = self.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=new_tokens,
                min_new_tokens=new_tokens,
                do_sample=False,
                streamer=times,
                pad_token_id=0,
            )
        return _written(times.taken, made[0, len(prompt) :].tolist())


class _Times:
    """What `generate` calls with the prompt, and then with each token."""

    def __init__(self, begun: float) -> None:
        self.taken, self.has_prompt = [begun], False

    def put(self, _: torch.Tensor) -> None:
        if self.has_prompt:
            self.taken.append(time.perf_counter())
        self.has_prompt = True

    def end(self) -> None:
        pass


class LlamaCppWriter:
    """llama.cpp through its Python library."""

    def __init__(self, job: Job) -> None:
        library: Any = importlib.import_module("llama_cpp")
        threads = {"n_threads": job.threads, "n_threads_batch": job.threads}
        self.model = library.Llama(job.path, n_ctx=job.num_positions, verbose=False, n_gpu_layers=0, **threads)

    def write(self, prompt: list[int], new_tokens: int) -> Written:
        """Write greedily."""
        self.model.reset()
        token_ids, times, new = [], [time.perf_counter()], prompt
        for _ in range(new_tokens):
            self.model.eval(new)
            token_ids.append(self.model.sample(temp=0.0))
            times.append(time.perf_counter())
            new = token_ids[-1:]
        return _written(times, token_ids)


WRITERS = {PELLUCID: OurWriter, TRANSFORMERS: TransformersWriter, LLAMA_CPP: LlamaCppWriter}


class WriterProcess:
    """A writer in a process of its own, which waits while others have their turn.

    Args:
        job: What it is to open.

    Raises:
        PellucidError: if it ends before it answers.
    """

    def __init__(self, job: Job) -> None:
        fresh = multiprocessing.get_context("spawn")  # a fork would inherit the threads of this process, stopped
        self.job = job
        self._connection, there = fresh.Pipe()
        self._process = fresh.Process(target=_serve, args=(there, job), daemon=True)
        self._process.start()
        there.close()
        self.opening_seconds: float = self._answer()

    def write(self, prompt: list[int], new_tokens: int) -> Written:
        """Write greedily."""
        self._connection.send((prompt, new_tokens))
        return self._answer()

    def peak_bytes(self) -> int:
        """The most memory it has had, above what it had before it opened its model."""
        self._connection.send(None)
        return self._answer()

    def close(self) -> None:
        """End it."""
        self._connection.close()
        self._process.join(timeout=10)
        if self._process.is_alive():
            self._process.terminate()

    def _answer(self) -> Any:
        try:
            answer = self._connection.recv()
        except (EOFError, OSError) as error:
            said = f"{self.job.writer} to answer from its own process"
            raise PellucidError(said, came="its end", remedy="look at what it said above") from error
        if isinstance(answer, str):
            expected = f"{self.job.writer} to open and run the model"
            raise PellucidError(expected, came=answer, remedy="leave it out of --against")
        return answer


def _serve(connection: Connection, job: Job) -> None:
    """What the other process does."""
    torch.set_num_threads(job.threads)
    package = PACKAGES.get(job.writer)
    if package:
        importlib.import_module(package)  # its own code is no part of the model's memory
    before, begun = _peak_bytes(), time.perf_counter()
    try:
        writer: Writer = WRITERS[job.writer](job)
        connection.send(time.perf_counter() - begun)
        while True:
            question = connection.recv()
            connection.send(_peak_bytes() - before if question is None else writer.write(*question))
    except EOFError:
        return
    except Exception as error:
        connection.send(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")


def _peak_bytes() -> int:
    """The most memory this process has had so far; 0 where the system does not tell."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    lines = status.read_text(encoding="ascii", errors="replace").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024


def _written(times: list[float], token_ids: list[int]) -> Written:
    rest = (times[-1] - times[1]) / (len(times) - 2) if len(times) > 2 else 0.0
    return Written(times[1] - times[0], rest, tuple(token_ids))
