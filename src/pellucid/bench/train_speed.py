"""How fast a training step is here: the plain loop, every variant of ours, and the one the planner chooses.

Right first, then fast: a variant that the probe refuses is not measured, and all that are measured must come to the
same loss after the same steps.

In: a `TrainingLoad`.  Out: a `SpeedReport`.  Used by: the command line.  Read next: ../doctor.py.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from pellucid.bench.contender import Contender, Elsewhere, own
from pellucid.bench.load import TrainingLoad
from pellucid.bench.plain import fits_plain
from pellucid.bench.rounds import interleave
from pellucid.bench.speed_report import Measured, SpeedReport, SpeedRow
from pellucid.train.ceiling import Product, seconds
from pellucid.train.events import Event, VariantTried
from pellucid.train.machine import reproducible
from pellucid.train.probe import difference, loss_and_gradients, probing, reference
from pellucid.train.trial import choose_variant, first_line, time_steps
from pellucid.train.variant import LossFunction, Variant, loss_function
from pellucid.training_config import TrainingConfig

PLAIN = "plain torch.nn loop"
SWITCHED = "the same, bfloat16, compiled"
TURN_SECONDS = 0.5  # the first step of a turn finds the caches full of the others' data
FEWEST_ROUNDS = 5
WARM_UP = 2  # steps before the rounds: the first makes the optimizer's state

Say = Callable[[str], None]
"""Hears, in a few words, what is being done."""


def bench_train(
    load: TrainingLoad,
    *,
    variants: Iterable[Variant],
    steps: int,
    peers: bool = False,
    say: Say = lambda text: None,
) -> SpeedReport:
    """Measure a training step.

    Args:
        load: Sizes, first weights, tokens, optimizer.
        variants: Of our step; the one that the planner chooses is measured too if it is not among them.
        steps: How many of each are timed; rounded so that all rounds are alike.
        peers: Measure the plain loop with torch's own switches for speed, too.
        say: Hears what is being done.
    """
    with reproducible(None, onednn=None):
        entries: list[_Entered | SpeedRow] = []
        if fits_plain(load.config):
            entries += _enter_plain(load, peers, say)
        entries += _enter_own(load, variants, say)
        planned = str(plan(load, say))
        if all(entry.name != planned for entry in entries):
            entries += _enter_own(load, [Variant.parse(planned)], say)
        entered = [entry for entry in entries if isinstance(entry, _Entered)]
        rounds, steps_per_round = cut_into_rounds(steps, entered[0].warm_seconds)
        ceilings = _measure(entered, rounds, steps_per_round, say)
    flop = flop_per_step(load)
    return SpeedReport(
        sizes=_sizes(load),
        threads=torch.get_num_threads(),
        steps=rounds * steps_per_round,
        flop_per_step=flop,
        ceilings=ceilings,
        rows=[
            entry.row(entered[0], tokens=load.tokens, flop=flop, ceilings=ceilings, planned=entry.name == planned)
            if isinstance(entry, _Entered)
            else entry
            for entry in entries
        ],
    )


def cut_into_rounds(steps: int, step_seconds: float) -> tuple[int, int]:
    """(rounds, steps of a turn): a turn lasts long enough to get going, and there are rounds enough for a median.

    Example:
        >>> cut_into_rounds(60, step_seconds=0.04), cut_into_rounds(60, step_seconds=2.0)
        ((5, 12), (60, 1))
    """
    steps_per_round = max(1, min(round(TURN_SECONDS / step_seconds), steps // FEWEST_ROUNDS))
    return max(1, round(steps / steps_per_round)), steps_per_round


def plan(load: TrainingLoad, say: Say = lambda text: None) -> Variant:
    """What the planner of `train` chooses for this load, given a long run."""
    model = load.model()

    def time_step(loss: LossFunction) -> float:
        return time_steps(load.train_step(model, loss))

    def heard(event: Event) -> None:
        if isinstance(event, VariantTried):
            say(f"the planner tried {event.variant}: " + (event.reason or f"{1e3 * (event.step_seconds or 0):.1f} ms"))

    return choose_variant(model, load.at(0), TrainingConfig(), time_step, float("inf"), heard)[0]


def flop_per_step(load: TrainingLoad) -> int:
    """Products and sums of one step, forwards and backwards, as torch counts them; without the optimizer's."""
    loss = loss_function(load.model(), Variant())
    with FlopCounterMode(display=False) as counter:
        total, _ = loss(*load.at(0))
        total.backward()
    return counter.get_total_flops()


@dataclass(kw_only=True)
class _Entered(Measured):
    """A contender, warmed up."""

    contender: Contender
    warm_seconds: float = 0.0

    def __post_init__(self) -> None:
        self.warm_seconds = self.contender.take(WARM_UP).seconds[-1]
        self.peak_bytes = self.contender.peak_bytes()

    def turn(self, steps: int) -> float:
        taken = self.contender.take(steps)
        self.losses += taken.losses
        self.seconds.append(sum(taken.seconds) / steps)
        return self.seconds[-1]


def _enter_plain(load: TrainingLoad, peers: bool, say: Say) -> Iterator[_Entered]:
    for switched in (False, True) if peers else (False,):
        name, precision = (SWITCHED, "bfloat16") if switched else (PLAIN, "float32")
        say(f"preparing {name}")
        contender = Elsewhere(load, torch.get_num_threads(), switched=switched)
        yield _Entered(name=name, precision=precision, contender=contender)


def _enter_own(load: TrainingLoad, variants: Iterable[Variant], say: Say) -> Iterator[_Entered | SpeedRow]:
    """Ours, each probed first; one that is not right gives its row at once."""
    batch, expected = load.at(0), None
    for variant in variants:
        say(f"preparing {variant}" + (": half a minute, if it was never compiled" if variant.compiled else ""))
        name, model = str(variant), load.model()
        try:
            with probing(model):
                expected = expected or reference(model, batch)
                begun = time.perf_counter()
                loss = loss_function(model, variant)
                refused = difference(loss_and_gradients(model, loss, batch), expected, variant.precision)
                spent = time.perf_counter() - begun
            if refused:
                yield SpeedRow(name=name, refused=refused)
                continue
            contender = own(load, model, loss)
            yield _Entered(name=name, precision=variant.precision, contender=contender, first_step_seconds=spent)
        except Exception as error:  # what a compiler raises says that this variant cannot be used here, no more
            if not variant.compiled:
                raise
            yield SpeedRow(name=name, refused=first_line(error))


def _measure(entered: list[_Entered], rounds: int, steps_per_round: int, say: Say) -> dict[str, float]:
    """Let everyone take turns, and with them a large product in each number type; returns the rates of these."""
    say(f"measuring: {len(entered)} contenders, {rounds} rounds of {steps_per_round} steps")
    products = {precision: Product(precision) for precision in dict.fromkeys(entry.precision for entry in entered)}
    turns = {entry.name: lambda entry=entry: entry.turn(steps_per_round) for entry in entered}
    turns |= {kind: lambda product=product: seconds(product, budget=0) for kind, product in products.items()}
    figures = interleave(turns, rounds)
    for entry in entered:
        entry.contender.close()
    return {precision: product.flop / median(figures[precision]) for precision, product in products.items()}


def _sizes(load: TrainingLoad) -> dict[str, Any]:
    config = load.config
    names = ("num_layers", "d_model", "num_heads", "context_length", "vocab_size", "feed_forward", "positions")
    return {name: getattr(config, name) for name in names} | {
        "batch_size": load.batch_size,
        "tokens_per_step": load.tokens,
        "matrix_algorithm": load.optimizer.matrix_algorithm,
    }
