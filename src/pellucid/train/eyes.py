"""What a run looks at beside its steps: its modules from time to time, and where numbers went bad.

    eyes.open(step, evaluated=...)     before the step: is it one to be looked at?
    train_step(step, ...)
    eyes.look(step)                    after it, while its gradients are there: a `ModuleHealth`
    eyes.first_non_finite(step)        after one that was skipped: a clause for its event

In: a `TrainStep`, the numbers of its steps.  Out: events, words.  Used by: loop.  Read next: loop.py.
"""

from dataclasses import dataclass, field

from torch import Tensor

from pellucid.parallel import Ranks
from pellucid.train.addresses import addresses, is_finite
from pellucid.train.events import Observer
from pellucid.train.first_non_finite import LOSS, FirstNonFinite, find_first_non_finite, told
from pellucid.train.health import measure_health, weights_of
from pellucid.train.step import TrainStep
from pellucid.train.variant import LossFunction

WHAT = ("output", "gradient", "weight gradient")
WORDS = 5  # numbers in which a rank tells the others what it found


@dataclass(kw_only=True)
class Eyes:
    """Made by parts, beside the step. Every rank has one, and they look together; without a step, nothing is seen.

    Args:
        observe: Hears what was seen.
        train_step: The run's.
        loss: The step's loss, computed eagerly: `loss_function(model, replace(variant, compiled=False))`.
        interval: Look at modules every so many steps; None: whenever the run is evaluated; 0: never.
    """

    observe: Observer = lambda event: None
    train_step: TrainStep | None = None
    loss: LossFunction | None = None
    interval: int | None = None
    before: dict[str, Tensor] | None = field(default=None, init=False)

    def open(self, step: int, *, evaluated: bool) -> None:
        """Before step number `step`: remember the weights if it is to be looked at."""
        due = evaluated if self.interval is None else self.interval > 0 and step % self.interval == 0
        self.before = weights_of(self.train_step.model) if due and self.train_step else None

    def look(self, step: int) -> None:
        """After step number `step`: tell what every module looks like, if it is one to be looked at."""
        before, self.before = self.before, None
        if before is not None and self.train_step is not None:
            batch = self.train_step.batches.at(step - 1)
            self.observe(measure_health(self.train_step.model, batch, step=step, before=before))

    def first_non_finite(self, step: int) -> str:
        """After step number `step`, which was skipped: whose numbers went bad first, in words.

        It costs a step, computed eagerly: the loop asks at the first of several in a row, and at the last.
        """
        train_step = self.train_step
        if train_step is None or self.loss is None:
            return ""
        weights = train_step.model.named_parameters()
        gradients = [name for name, weight in weights if weight.grad is not None and not is_finite(weight.grad)]
        found = find_first_non_finite(
            train_step.model,
            self.loss,
            train_step.micro_batches(train_step.batches.at(step - 1)),
            seed=train_step.dropout_seed(step) if train_step.model.config.dropout else None,
        )
        modules = [LOSS, *(address for address, _ in addresses(train_step.model))]
        return told(of_any_rank(found, modules, train_step.ranks), gradients)


def of_any_rank(found: FirstNonFinite | None, modules: list[str], ranks: Ranks) -> FirstNonFinite | None:
    """What the first rank found that found anything; every rank has to ask, with the same modules."""
    told_by_all = [0.0] * (WORDS * ranks.count)
    if found is not None:
        words = [1, modules.index(found.module), WHAT.index(found.what), found.input_finite, found.weights_finite]
        told_by_all[WORDS * ranks.rank : WORDS * (ranks.rank + 1)] = map(float, words)
    told_by_all = [round(number) for number in ranks.sum(told_by_all)]
    for rank in range(ranks.count):
        is_found, module, what, input_finite, weights_finite = told_by_all[WORDS * rank : WORDS * (rank + 1)]
        if is_found:
            return FirstNonFinite(
                module=modules[module],
                what=WHAT[what],
                input_finite=bool(input_finite),
                weights_finite=bool(weights_finite),
            )
    return None
