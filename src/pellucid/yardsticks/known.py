"""How much of a text a model has read before: stretches of it that stand word for word in what it learned from.

A figure on text that was learned from says how well a model remembers. Copied passages are looked for letter by letter
in copied.py; here a few hundred stretches from all over a text are enough to tell that most of it is known, or none.

In: a text, the training text as a stream.  Out: `share_known`.  Used by: the command line.  Read next: copied.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

STRETCH = 50  # characters: ten words in a row are hardly written twice by chance
MOST_TRIED = 200  # stretches: the share is known to a few percent
FEWEST_LETTERS = 8  # different ones: a rule of dashes stands everywhere


def share_known(texts: Sequence[str], known: Iterable[str]) -> float | None:
    """Look for stretches of a text in another.

    Args:
        texts: The text, in parts.
        known: The other, in pieces.

    Returns:
        The share of the stretches that was found; None for a text too short to tell.

    Example:
        >>> text = "It was the best of times, it was the worst of times, it was the age of wisdom."
        >>> share_known([text], [text.upper(), text]), share_known([text], [text.upper()])
        (1.0, 0.0)
    """
    every = max(STRETCH, sum(map(len, texts)) // MOST_TRIED)
    stretches = {text[place : place + STRETCH] for text in texts for place in range(0, len(text) - STRETCH + 1, every)}
    stretches = {stretch for stretch in stretches if len(set(stretch)) >= FEWEST_LETTERS}
    if not stretches:
        return None
    missing = stretches
    for piece in known:
        missing = {stretch for stretch in missing if stretch not in piece}
    return 1 - len(missing) / len(stretches)
