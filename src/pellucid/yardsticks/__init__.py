"""Yardsticks: what a loss has to be compared with before it means anything.

    score → chance → ngram → xz → measure → beside → known → copied      (reading order)

In: both sides of the split.  Out: bits per character by passage.  Used by: train, the report, the command line.
Read next: score.py.
"""

from pellucid.yardsticks.beside import measure_beside
from pellucid.yardsticks.chance import chance
from pellucid.yardsticks.copied import Copied, longest_copied, longest_copied_of_each
from pellucid.yardsticks.known import share_known
from pellucid.yardsticks.measure import Yardsticks, measure_yardsticks
from pellucid.yardsticks.ngram import witten_bell
from pellucid.yardsticks.score import Score
from pellucid.yardsticks.xz import xz

__all__ = [
    "Copied",
    "Score",
    "Yardsticks",
    "chance",
    "longest_copied",
    "longest_copied_of_each",
    "measure_beside",
    "measure_yardsticks",
    "share_known",
    "witten_bell",
    "xz",
]
