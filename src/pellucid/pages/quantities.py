"""Numbers as a person says them.

In: numbers.  Out: words.  Used by: the command line, report, compare.  Read next: markup.py.
"""

import math


def counted(number: int, noun: str) -> str:
    """A number of things.

    Example:
        >>> counted(1, "layer"), counted(1200, "step")
        ('1 layer', '1,200 steps')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def duration(seconds: float) -> str:
    """Seconds as a person says them.

    Example:
        >>> duration(7.6), duration(75), duration(7500)
        ('8 s', '1:15 min', '2:05 h')
    """
    if not math.isfinite(seconds):
        return "unknown time"
    minutes, rest = divmod(max(0, round(seconds)), 60)
    if minutes >= 60:
        return f"{minutes // 60}:{minutes % 60:02d} h"
    return f"{minutes}:{rest:02d} min" if minutes else f"{rest} s"


def size(num_bytes: float) -> str:
    """Bytes as a person says them.

    Example:
        >>> size(0), size(43_000_000), size(1_249_000_000), size(24e9)
        ('0 MB', '43 MB', '1.2 GB', '24 GB')
    """
    if num_bytes < 1e9:
        return f"{num_bytes / 1e6:.0f} MB"
    return f"{num_bytes / 1e9:.1f} GB" if num_bytes < 1e10 else f"{num_bytes / 1e9:.0f} GB"
