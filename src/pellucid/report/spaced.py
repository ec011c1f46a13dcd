"""Some of many: as many as a page has room for, evenly spaced, the first and the last among them.

In: a list.  Out: a shorter one.  Used by: learning.py, attention.py, health.py.  Read next: opening.py.
"""

from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


def spaced(items: Sequence[Item], most: int) -> list[Item]:
    """At most so many of the items.

    Example:
        >>> spaced("abcdefg", 3)
        ['a', 'd', 'g']
    """
    if len(items) <= most:
        return list(items)
    return [items[round(place * (len(items) - 1) / max(1, most - 1))] for place in range(most)]
