"""Other people's names and files; the only room that knows them.

In: weights as others write them.  Out: weights as ours.  Used by: load, cs336.  Read next: names.py.
"""

from pellucid.convert.names import CS336, Family, Row, halves_to_neighbours, neighbours_to_halves, to_ours, to_theirs
from pellucid.convert.pickled import read_pickled

__all__ = [
    "CS336",
    "Family",
    "Row",
    "halves_to_neighbours",
    "neighbours_to_halves",
    "read_pickled",
    "to_ours",
    "to_theirs",
]
