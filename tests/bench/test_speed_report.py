"""Rows of the report."""

import json

import pytest

from pellucid.bench import Measured, SpeedReport, SpeedRow


def _row(loss, precision="float32", first_loss=2.0):
    first = Measured(name="plain", precision="float32", seconds=[1.0], losses=[first_loss])
    entry = Measured(name="ours", precision=precision, seconds=[0.5], losses=[9.0, loss])
    return entry.row(first, tokens=10, flop=30, ceilings={"float32": 120.0, "bfloat16": 240.0}, planned=False)


def test_a_rate_is_set_beside_the_ceiling_of_its_own_number_type():
    assert _row(2.0).share_of_ceiling == 0.5
    assert _row(2.0, "bfloat16").share_of_ceiling == 0.25


@pytest.mark.parametrize(
    ("loss", "precision", "agrees"),
    [
        (2.001, "float32", True),
        (2.01, "float32", False),
        (2.01, "bfloat16", True),
        (2.1, "bfloat16", False),
        (float("nan"), "bfloat16", False),
    ],
)
def test_the_last_loss_has_to_be_the_first_rows(loss, precision, agrees):
    assert _row(loss, precision).agrees is agrees


def test_the_planners_choice_is_found_and_all_of_it_is_json():
    rows = [SpeedRow(name="plain"), SpeedRow(name="ours", planned=True), SpeedRow(name="other", refused="it is wrong")]
    report = SpeedReport(sizes={}, threads=1, steps=3, flop_per_step=4, ceilings={"float32": 1.0}, rows=rows)
    assert report.planned is rows[1]
    assert json.loads(json.dumps(report.as_json()))["rows"][2]["refused"] == "it is wrong"
