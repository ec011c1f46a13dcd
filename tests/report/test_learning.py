"""Curves, warnings and samples of a run."""

import math
import re

import pytest

from pellucid.report.learning import MOST_SAMPLES, curves, noticed, samples, yardstick_levels
from tests.report.invented_run import FACTS, evaluated, finished, invented_record, sampled, step


def test_a_real_run_has_its_curves_with_the_yardsticks(record):
    drawn = curves(record)
    assert drawn.count("<svg") == 4  # loss for a page and for a phone, learning rate, gradient norm
    assert [level.name for level in yardstick_levels(record)][:2] == ["chance", "letter counts"]
    assert "letter counts " in drawn


def test_the_yardsticks_are_the_measured_ones(tmp_path):
    levels = yardstick_levels(invented_record(tmp_path / "run"))
    assert {level.name: level.value for level in levels} == {"chance": 6, "letter counts": 4.8, "5-gram": 2, "xz": 2.5}


def test_without_held_out_text_there_is_one_line_and_no_yardstick(tmp_path):
    facts = FACTS | {"yardsticks": None}
    drawn = curves(invented_record(tmp_path / "run", step(1), step(2), evaluated(2, held_out=None), facts=facts))
    assert "Nothing was held out" in drawn
    assert "text it never reads" not in drawn
    assert "xz" not in drawn


def test_rates_that_lie_on_each_other_are_one_line(tmp_path):
    drawn = curves(invented_record(tmp_path / "run", step(1), step(2)))
    assert "matrices (Muon)" in drawn
    assert "head" in drawn
    assert "norms and biases" not in drawn


def test_the_limit_of_the_gradient_norm_is_drawn_where_it_was_reached(tmp_path):
    assert "clipped at 1.00" in curves(invented_record(tmp_path / "a", step(1), step(2)))
    calm = [step(number, gradient_norm=0.1) for number in (1, 2)]
    assert "clipped" not in curves(invented_record(tmp_path / "b", *calm))


def test_the_step_that_was_kept_is_told_if_it_is_not_the_last(tmp_path):
    assert "holds step 60, the best" in curves(invented_record(tmp_path / "run", step(100), finished(best_step=60)))


@pytest.mark.parametrize(
    "events", [[], [step(1)], [step(1, train=None, gradient_norm=None, learning_rates={})], [step(1, train=math.nan)]]
)
def test_the_shortest_runs_have_a_page_too(tmp_path, events):
    assert curves(invented_record(tmp_path / "run", *events))


def test_what_was_noticed_is_told_again_as_text(tmp_path):
    told = {"event": "Noticed", "step": 1200, "kind": "loss spike", "sentence": "The loss jumped <b>."}
    assert 'Step 1,200: <bdi dir="auto">The loss jumped &lt;b&gt;.</bdi>' in noticed(
        invented_record(tmp_path / "run", told)
    )


def test_many_warnings_are_told_in_part(tmp_path):
    told = [{"event": "Noticed", "step": number, "sentence": "so"} for number in range(50)]
    assert "And 30 more, in metrics.jsonl." in noticed(invented_record(tmp_path / "run", *told))


def test_skipped_steps_are_counted_with_the_first_module(tmp_path):
    bad = [step(number, skipped=True, not_finite="the output of blocks.1") for number in range(1, 8)]
    told = noticed(invented_record(tmp_path / "run", *bad))
    assert "7 steps skipped" in told
    assert "(step 1, 2, 3, 4, 5, …)" in told
    assert "first not finite: the output of blocks.1." in told


def test_a_calm_run_has_nothing_to_notice(record):
    assert noticed(record) == ""


def test_the_sample_of_every_evaluation_is_shown_with_its_score(tmp_path, hostile):
    shown = samples(
        invented_record(
            tmp_path / "run", evaluated(10), sampled(10, "first"), evaluated(20), sampled(20, hostile, prompt="To")
        )
    )
    assert "Step 10 · 3.80 bits" in shown
    assert "Step 20 · 3.60 bits" in shown
    assert 'Each continues <bdi dir="auto">To</bdi>' in shown
    assert "<script>" not in shown


def test_of_many_samples_the_first_the_last_and_some_between_are_shown(tmp_path):
    events = [sampled(number, f"text{number}.") for number in range(1, 1001)]
    shown = samples(invented_record(tmp_path / "run", *events))
    found = [int(number) for number in re.findall(r"text(\d+)\.", shown)]
    assert len(found) == MOST_SAMPLES
    assert (found[0], found[-1]) == (1, 1000)
    assert f"{MOST_SAMPLES} of 1,000 evaluations are shown." in shown


def test_without_samples_there_is_nothing(tmp_path):
    assert samples(invented_record(tmp_path / "run", sampled(1, "  "))) == ""
