import pytest

from pellucid.cli.evaluate_findings import Findings
from pellucid.inspection import TextScore
from pellucid.yardsticks import Score


def findings(**changes):
    """An evaluation of two documents, changed."""
    documents = (
        TextScore(name="a.txt", characters=600, utf8_bytes=700, tokens=300, nats=900.0),
        TextScore(name="b.txt", characters=400, utf8_bytes=400, tokens=200, nats=800.0),
    )
    usual = {
        "model": "runs/book",
        "documents": documents,
        "score": Score("model", (1300.0, 1152.5), (600, 400)),
        "parts": "documents",
        "yardsticks": (
            Score("chance", (5000.0,), (1000,), "a guess"),
            Score("letters", (2900.0, 1900.0), (600, 400), "counts"),
            Score("5-gram", (1500.0, 1300.0), (600, 400), "a table"),
            Score("xz after", (2900.0,), (1000,), "xz"),
        ),
        "context_length": 256,
        "stride": 128,
        "held_out": False,
        "escape_bits": 30.0,
        "seconds": 2.0,
    }
    return Findings(**{**usual, **changes})


def test_together_every_token_counts_the_same():
    together = findings().together
    assert together.loss == pytest.approx(1700 / 500)
    assert together.characters == 1000
    assert findings().tokens_per_second == 250


def test_the_best_table_is_a_table_and_no_compressor():
    assert findings().best_table.name == "5-gram"
    assert findings(yardsticks=findings().yardsticks[:2]).best_table.name == "letters"
    assert findings(yardsticks=()).best_table is None


def test_the_lead_is_part_by_part_and_only_over_the_same_characters():
    lead, error = findings().lead
    assert lead == pytest.approx((1500 + 1300 - 1300 - 1152.5) / 1000)
    assert error is not None
    partly = (Score("5-gram", (700.0, 600.0), (300, 200)),)
    assert findings(yardsticks=partly).lead is None
