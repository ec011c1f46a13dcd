"""What takes part in a measurement: whoever takes training steps, in this process or in one of its own.

The plain loop runs in a process of its own, which keeps no freed memory as ours does (cli/process.py): it is what one
gets who knows nothing of it. How its threads wait it inherits, or a busy neighbour would decide the comparison. While
one contender runs, the others wait for a message.

In: a `TrainingLoad`, a way to compute its loss.  Out: durations and losses of steps.  Used by: rounds, train_speed.
Read next: rounds.py.
"""

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Protocol, runtime_checkable

import torch

from pellucid.bench.load import TrainingLoad
from pellucid.bench.memory import held_bytes, peak_growth_bytes
from pellucid.bench.plain import PlainLoop
from pellucid.errors import PellucidError
from pellucid.nn import TransformerLM
from pellucid.train.variant import LossFunction


@dataclass
class Taken:
    """Steps that were taken: how long each lasted, and the loss it began with."""

    seconds: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)


@runtime_checkable
class Contender(Protocol):
    """Whoever takes training steps."""

    def take(self, count: int) -> Taken:
        """Take the next steps."""
        ...

    def peak_bytes(self) -> int:
        """Take one more step, and see how much memory its tensors need at most, weights and optimizer included."""
        ...

    def close(self) -> None:
        """Take no more."""
        ...


class Here:
    """Steps taken in this process.

    Args:
        step: Takes the step of a number, counted from 1, and returns its loss.
        held: Bytes of the tensors that stay between steps.

    Example:
        >>> Here(lambda step: 1.0 / step).take(2).losses
        [1.0, 0.5]
    """

    def __init__(self, step: Callable[[int], float], held: Callable[[], int] = lambda: 0) -> None:
        self.step, self.held, self.done = step, held, 0

    def take(self, count: int) -> Taken:
        """Take the next steps."""
        taken = Taken()
        for _ in range(count):
            self.done += 1
            begun = time.perf_counter()
            taken.losses.append(self.step(self.done))
            taken.seconds.append(time.perf_counter() - begun)
        return taken

    def peak_bytes(self) -> int:
        """Most memory that tensors hold at once."""
        return self.held() + peak_growth_bytes(lambda: self.take(1))

    def close(self) -> None:
        """There is nothing to end."""


def plain(load: TrainingLoad, *, switched: bool = False) -> Here:
    """The plain loop."""
    loop = PlainLoop(load, switched=switched)
    return Here(loop, lambda: held_bytes(loop.model, [loop.optimizer]))


def own(load: TrainingLoad, model: TransformerLM, loss: LossFunction) -> Here:
    """Our training step."""
    train_step = load.train_step(model, loss)
    return Here(lambda step: train_step(step, 1.0).loss, lambda: held_bytes(model, train_step.optimizer.parts))


class Elsewhere:
    """The plain loop in a new process.

    Args:
        load: What it trains.
        threads: As many as here.
        switched: With torch's switches for speed.
    """

    def __init__(self, load: TrainingLoad, threads: int, *, switched: bool = False) -> None:
        fresh = multiprocessing.get_context("spawn")  # a fork would inherit the threads of this process, stopped
        self.connection, there = fresh.Pipe()
        self.process = fresh.Process(target=_serve, args=(there, load, threads, switched), daemon=True)
        self.process.start()
        there.close()

    def take(self, count: int) -> Taken:
        """Take the next steps."""
        return Taken(*self._ask(count))

    def peak_bytes(self) -> int:
        """Most memory that tensors hold at once."""
        return self._ask(None)

    def _ask(self, question: int | None) -> Any:
        try:
            self.connection.send(question)
            return self.connection.recv()
        except (EOFError, OSError) as error:
            raise PellucidError(
                "the plain loop to answer from its own process", came="its end", remedy="look at what it said above"
            ) from error

    def close(self) -> None:
        """End the process."""
        self.connection.close()
        self.process.join()


def _serve(connection: Connection, load: TrainingLoad, threads: int, switched: bool) -> None:
    """What the other process does: as many steps as it is told, until nobody asks any more."""
    torch.set_num_threads(threads)
    contender = plain(load, switched=switched)
    while True:
        try:
            count = connection.recv()
        except EOFError:
            return
        if count is None:
            connection.send(contender.peak_bytes())
        else:
            taken = contender.take(count)
            connection.send((taken.seconds, taken.losses))
