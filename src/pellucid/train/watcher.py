"""Who watches a run's numbers and says, as it happens, what a person should know.

    StepDone      a step is skipped · the loss jumps, and whether it comes back · gradients grow beyond what they were
    Evaluated     the held-out loss rises while the train loss falls · nothing moves any more
    ModuleHealth  a module's numbers leave those of its kind

What is said follows from the events alone, and so a run that goes on says what it would have said: `replay` hears the
lines of metrics.jsonl. Each thing is said once, or when it has doubled. Bounds are twice what 16 healthy runs on five
languages came to at most (docs/log.md), or more.

In: events.  Out: `Noticed` events.  Used by: run.  Read next: eyes.py.
"""

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields
from statistics import median
from typing import Any, Protocol

from pellucid.train.events import Evaluated, Event, ModuleHealth, Noticed, Observer, StepDone
from pellucid.train.outliers import Outlier, stands_out

USUAL_STEPS = 64  # whose losses are the usual ones
FEWEST_STEPS = 32  # before anything is usual
NORMAL = 1.4826  # times the middle distance from the middle: the standard deviation, where losses are normal
SPREADS = 8.0  # above the usual, two steps in a row; healthy runs: one step within 4.1, two within 2.5
MANY_SPREADS = 16.0  # above the usual, one step that is also half as high again
SMALLEST = 0.1  # of the usual, and bits per character: less is not worth a line
PATIENCE = 64  # steps after which a loss that has not come back is given up
USUAL_NORMS, LATEST_NORMS = 256, 8
NORM_FACTOR = 4.0  # times the usual; healthy runs stay within 1.9
RISEN_AT_ONCE, RISEN_TWICE = 0.015, 0.01  # above the best held-out loss; before they fall again, runs rise by 0.008
MOVED = 0.005  # of a loss, over so many evaluations and this part of the run: less is a standstill
EVALUATIONS, PART = 4, 0.25
NEAR_THE_END = 0.9  # of the steps: what would a person change?


class _Watch(Protocol):
    def hear(self, event: Event) -> Noticed | None: ...


class Watcher:
    """Hears every event of a run, in order; gives what there is to say after each.

    Example:
        >>> watcher = Watcher()
        >>> rest = {"steps": 9, "train": None, "learning_rates": {}, "epoch": 0, "tokens_per_second": 0}
        >>> for step in range(1, 43):
        ...     bits = 5.0 if step > 40 else 2.0 + step % 3 / 100
        ...     event = StepDone(step=step, bits_per_character=bits, gradient_norm=1, seconds_left=0, **rest)
        ...     for noticed in watcher(event):
        ...         print(noticed.sentence)
        Loss spike at step 41: 5.00 bits per character instead of about 2.01.
    """

    def __init__(self) -> None:
        self.watches: tuple[_Watch, ...] = (_Skipped(), _Loss(), _GradientNorm(), _HeldOut(), _Standstill(), _Modules())

    def __call__(self, event: Event) -> list[Noticed]:
        """Hear an event."""
        return [noticed for watch in self.watches if (noticed := watch.hear(event)) is not None]

    def replay(self, lines: Iterable[dict[str, Any]]) -> None:
        """Hear what a run has said so far, from metrics.jsonl, and say nothing of it again."""
        for line in lines:
            if event := _event_of(line):
                self(event)


def watched(observe: Observer, watcher: Watcher) -> Observer:
    """An observer that hears what the watcher has to say too, after the event that it is about.

    Meant for run: around whoever records and shows, with a new watcher, or one that has heard the run so far.
    """

    def heard(event: Event) -> None:
        observe(event)
        for noticed in watcher(event):
            observe(noticed)

    return heard


class _Skipped:
    """Says that a step was skipped, and why: the first, the tenth, the hundredth."""

    def __init__(self) -> None:
        self.count = 0

    def hear(self, event: Event) -> Noticed | None:
        if not isinstance(event, StepDone) or not event.skipped:
            return None
        self.count += 1
        if 10 ** round(math.log10(self.count)) != self.count:
            return None
        counted = f", the {self.count:,}th of this run" if self.count > 1 else ""
        first = f"; {event.not_finite}" if event.not_finite else ""
        sentence = (
            f"Step {event.step:,} was skipped{counted}: its loss was {event.bits_per_character:.3g} bits per character,"
            f" its gradient norm {event.gradient_norm:.3g}{first}."
        )
        return Noticed(step=event.step, kind="skipped step", sentence=sentence)


class _Loss:
    """Says when the loss of the batches jumps, and whether it comes back."""

    def __init__(self) -> None:
        self.usual: deque[float] = deque(maxlen=USUAL_STEPS)
        self.latest: deque[float] = deque(maxlen=3)
        self.high: list[tuple[int, float]] = []  # the steps of a jump that may be one
        self.begun: int | None = None  # the step at which the spike under way began
        self.spikes = 0

    def hear(self, event: Event) -> Noticed | None:
        if not isinstance(event, StepDone) or event.skipped or not math.isfinite(event.bits_per_character):
            return None
        bits = event.bits_per_character
        self.latest.append(bits)
        if len(self.usual) < FEWEST_STEPS:
            self.usual.append(bits)
            return None
        middle = median(self.usual)
        spread = NORMAL * median(abs(one - middle) for one in self.usual)
        if self.begun is not None:
            return self._under_way(event.step, middle, spread)
        above = bits - middle
        if above <= max(SPREADS * spread, SMALLEST * middle, SMALLEST):
            self.usual.extend([one for _, one in self.high] + [bits])  # a single high one was a hard batch
            self.high = []
            return None
        self.high.append((event.step, bits))
        if len(self.high) < 2 and not above > max(MANY_SPREADS * spread, middle / 2):
            return None
        self.begun, self.high, self.spikes = self.high[0][0], [], self.spikes + 1
        if not self._is_told():
            return None
        more = f" It is spike number {self.spikes}: lower learning rates make fewer." if self.spikes > 1 else ""
        sentence = f"Loss spike at step {self.begun:,}: {bits:.2f} bits per character instead of about {middle:.2f}."
        return Noticed(step=event.step, kind="loss spike", sentence=sentence + more, value=bits, usual=middle)

    def _under_way(self, step: int, middle: float, spread: float) -> Noticed | None:
        now, lasted = median(self.latest), step - (self.begun or step)
        is_back = len(self.latest) == self.latest.maxlen and now <= middle + max(3 * spread, SMALLEST * middle / 2)
        if not is_back and lasted < PATIENCE:
            return None
        sentence = f"The loss is back at {now:.2f} bits per character, {lasted} steps after the spike."
        if not is_back:
            sentence = (
                f"The loss has not come back {lasted} steps after the spike at step {self.begun:,}: {now:.2f} bits per"
                f" character, and was {middle:.2f}. model.safetensors holds the best step; lower learning rates help."
            )
            self.usual.clear()
        self.begun = None
        if not self._is_told():
            return None
        return Noticed(step=step, kind="loss spike", sentence=sentence, value=now, usual=middle)

    def _is_told(self) -> bool:
        return self.spikes & (self.spikes - 1) == 0  # 1, 2, 4, 8, ...


class _GradientNorm:
    """Says when gradients have grown beyond what they were, and again when they have doubled since."""

    def __init__(self) -> None:
        self.norms: deque[float] = deque(maxlen=USUAL_NORMS + LATEST_NORMS)
        self.bound = NORM_FACTOR

    def hear(self, event: Event) -> Noticed | None:
        if not isinstance(event, StepDone) or event.skipped or not math.isfinite(event.gradient_norm):
            return None
        self.norms.append(event.gradient_norm)
        if event.step % LATEST_NORMS or len(self.norms) < FEWEST_STEPS + LATEST_NORMS:
            return None
        norms = list(self.norms)
        usual, now = median(norms[:-LATEST_NORMS]), median(norms[-LATEST_NORMS:])
        if not now > self.bound * usual > 0:
            return None
        self.bound = 2 * now / usual
        sentence = (
            f"The gradient norm has grown to {now:.3g} at step {event.step:,}, {now / usual:.0f} times its usual"
            f" {usual:.3g}: where the loss rises too, lower the learning rates (--optimizer.matrix-learning-rate)."
        )
        return Noticed(step=event.step, kind="gradient norm", sentence=sentence, value=now, usual=usual)


@dataclass(frozen=True)
class _Losses:
    """An evaluation in which both losses are numbers."""

    step: int
    steps: int
    held_out: float
    train: float
    is_best: bool

    @classmethod
    def of(cls, event: Event) -> "_Losses | None":
        if not isinstance(event, Evaluated) or event.held_out is None or event.train is None:
            return None
        both_finite = math.isfinite(event.held_out) and math.isfinite(event.train)
        return cls(event.step, event.steps, event.held_out, event.train, event.is_best) if both_finite else None


class _HeldOut:
    """Says when the held-out loss has risen from its best while the train loss fell: the text is learned by heart."""

    def __init__(self) -> None:
        self.best: _Losses | None = None
        self.worse, self.is_told = 0, False

    def hear(self, event: Event) -> Noticed | None:
        now, best = _Losses.of(event), self.best
        if now is None:
            return None
        if now.is_best or best is None:
            self.best, self.worse, self.is_told = now, 0, False
            return None
        risen = now.held_out - best.held_out
        self.worse = self.worse + 1 if risen > 0 else 0
        is_rising = risen > (RISEN_TWICE if self.worse > 1 else RISEN_AT_ONCE) * best.held_out
        by_heart = now.train < now.held_out and best.train - now.train > risen  # or else both are noise
        if self.is_told or not (is_rising and by_heart):
            return None
        self.is_told = True
        or_stop = ", or a stop here (Ctrl-C)" if now.step < now.steps else ""
        sentence = (
            f"Overfitting: since step {best.step:,} the held-out loss has risen from {best.held_out:.3f} to"
            f" {now.held_out:.3f} while the train loss fell from {best.train:.2f} to {now.train:.2f}. model.safetensors"
            f" holds step {best.step:,}; more text helps, or more dropout (--model.dropout){or_stop}."
        )
        return Noticed(step=now.step, kind="overfitting", sentence=sentence, value=now.held_out, usual=best.held_out)


class _Standstill:
    """Says when neither loss moves any more, long before the end."""

    def __init__(self) -> None:
        self.evaluated: deque[_Losses] = deque(maxlen=EVALUATIONS)
        self.is_told = False

    def hear(self, event: Event) -> Noticed | None:
        now = _Losses.of(event)
        if now is None:
            return None
        self.evaluated.append(now)
        first = self.evaluated[0]
        lasted = now.step - first.step
        is_long = len(self.evaluated) == EVALUATIONS and lasted >= PART * now.steps
        if self.is_told or not is_long or now.step > NEAR_THE_END * now.steps:
            return None
        for numbers in ([one.held_out for one in self.evaluated], [one.train for one in self.evaluated]):
            if max(numbers) - min(numbers) > MOVED * min(numbers):
                return None
        self.is_told = True
        sentence = (
            f"Nothing has moved for {lasted:,} steps: held out {now.held_out:.3f}, train {now.train:.2f} bits per"
            " character. Another learning rate (--optimizer.matrix-learning-rate) or a larger model may get further."
        )
        return Noticed(step=now.step, kind="standstill", sentence=sentence, value=now.held_out, usual=first.held_out)


class _Modules:
    """Says which module's numbers have left those of its kind; each once, the farthest first."""

    def __init__(self) -> None:
        self.earlier: ModuleHealth | None = None
        self.told: set[str] = set()

    def hear(self, event: Event) -> Noticed | None:
        if not isinstance(event, ModuleHealth):
            return None
        found = [one for one in stands_out(event, self.earlier) if one.module not in self.told]
        self.earlier = event
        if not found:
            return None
        farthest = max(found, key=_distance)
        others = {one.module for one in found} - {farthest.module}
        self.told |= {farthest.module, *others}
        more = f"; {len(others)} more stand out: see metrics.jsonl" if others else ""
        return Noticed(
            step=event.step,
            kind="module",
            sentence=f"Step {event.step:,}, {farthest}{more}.",
            value=farthest.value,
            usual=farthest.usual,
        )


def _distance(outlier: Outlier) -> float:
    if outlier.value is None:
        return math.inf
    return outlier.value / outlier.usual if outlier.usual and outlier.quantity != "entropy" else 1.0


def _event_of(line: dict[str, Any]) -> Event | None:
    """The event that a line of metrics.jsonl holds, if it is one that is watched and of this version."""
    for kind in (StepDone, Evaluated, ModuleHealth):
        if line.get("event") == kind.__name__:
            known = {field.name: field for field in fields(kind) if field.name in line}
            if any(
                field.default is MISSING and field.default_factory is MISSING and field.name not in known
                for field in fields(kind)
            ):
                return None
            lost = {name for name, field in known.items() if field.type is float and line[name] is None}
            values: dict[str, Any] = {name: math.nan if name in lost else line[name] for name in known}
            return kind(**values)
    return None
