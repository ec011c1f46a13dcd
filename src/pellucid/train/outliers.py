"""Modules whose numbers leave those of their kind.

    blocks.0.attention.output   gradient 0.011 ┐
    blocks.1.attention.output   gradient 0.009 │ the middle of their kind: 0.010
    blocks.2.attention.output   gradient 0.410 │ 40 times that, and was 12 times when last looked at: named
    blocks.3.attention.output   gradient 0.008 ┘

In: a `ModuleHealth` and the one before it.  Out: `Outlier`s.  Used by: watcher, the report.  Read next: watcher.py.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from pellucid.train.events import ModuleHealth

FACTOR = 10.0  # times the middle of its kind; healthy runs stay within 5 (docs/log.md)
GROWTH = 1.5  # times its lead when last looked at; a module that always was far off is made so
FEWEST = 3  # of a kind, to have a middle that one of them does not make
COLLAPSED = 0.02  # of the entropy that looking at all keys alike would have: every head looks at one key
WORDS = {
    "gradient": "gradients",
    "update_ratio": "updates, as a share of its weights,",
    "activation": "outputs",
    "weight": "weights",
}


@dataclass(frozen=True, kw_only=True)
class Outlier:
    """A number that left those of its kind.

    Example:
        >>> print(Outlier(module="blocks.3.attention.output", quantity="gradient", value=0.4, usual=0.01))
        blocks.3.attention.output: gradients 40 times those of the other blocks, and growing
    """

    module: str
    quantity: str
    value: float | None
    """None: not finite."""
    usual: float
    """The middle of its kind."""

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.module}: {WORDS.get(self.quantity, self.quantity)} that are not finite"
        if self.quantity == "entropy":
            return f"{self.module}: every head looks at one place only (entropy {self.value:.3f} nats)"
        times = self.value / self.usual
        return f"{self.module}: {WORDS[self.quantity]} {times:,.0f} times those of the other blocks, and growing"


def stands_out(now: ModuleHealth, earlier: ModuleHealth | None = None) -> list[Outlier]:
    """Modules of blocks whose numbers are far above the middle of the same module in the other blocks, and growing.

    A number that is not finite stands out at once; so does attention that has collapsed onto single keys.

    Args:
        now: The latest look.
        earlier: The look before; without it nothing can be said to grow.

    Example:
        >>> def look(*gradients):
        ...     modules = {f"blocks.{i}.feed_forward.up": {"gradient": g} for i, g in enumerate(gradients)}
        ...     return ModuleHealth(step=1, modules=modules, seconds=0)
        >>> stands_out(look(1, 30, 1, 1), look(1, 30, 1, 1))
        []
        >>> print(*stands_out(look(1, 30, 1, 1), look(1, 12, 1, 1)))
        blocks.1.feed_forward.up: gradients 30 times those of the other blocks, and growing
    """
    found = []
    leads, before = _leads(now), _leads(earlier) if earlier else {}
    for (module, quantity), (value, usual) in leads.items():
        if quantity == "entropy_ceiling":
            continue
        if value is None:
            is_out = quantity != "update_ratio"  # of weights of 0 there is none
        elif quantity == "entropy":
            ceiling = now.modules[module].get("entropy_ceiling") or 0.0
            is_out = value < COLLAPSED * ceiling
        else:
            lead, lead_before = _lead(value, usual), _lead(*before.get((module, quantity), (None, 0.0)))
            is_out = lead > FACTOR and 0 < GROWTH * lead_before < lead
        if is_out:
            found.append(Outlier(module=module, quantity=quantity, value=value, usual=usual))
    return found


def _leads(health: ModuleHealth) -> dict[tuple[str, str], tuple[float | None, float]]:
    """By module and quantity: the number, and the middle of its kind; 0 where its kind is too small to have one."""
    kinds: dict[tuple[str, str], dict[str, float | None]] = defaultdict(dict)
    for module, figures in health.modules.items():
        for quantity, value in figures.items():
            kinds[re.sub(r"^blocks\.\d+", "blocks", module), quantity][module] = value
    leads = {}
    for (_, quantity), members in kinds.items():
        numbers = [value for value in members.values() if value is not None]
        usual = median(numbers) if len(numbers) >= FEWEST else 0.0
        leads |= {(module, quantity): (value, usual) for module, value in members.items()}
    return leads


def _lead(value: float | None, usual: float) -> float:
    """How many times the middle of its kind; 0 where nobody can say."""
    return value / usual if value is not None and usual > 0 else 0.0
