"""The first screen: true of every way a run can end."""

import pytest

from pellucid.report.opening import closing_sample, finished, lead
from tests.report import invented_run
from tests.report.invented_run import FACTS, evaluated, invented_record, sampled, step


def _lead(tmp_path, *events, **more):
    return lead(invented_record(tmp_path / "run", *events, **more))


def test_a_completed_run_begins_with_its_verdict_and_four_figures(tmp_path):
    first = _lead(tmp_path, step(100), invented_run.finished())
    assert "A language model of 2.2 million parameters, trained on " in first
    assert "it hesitates between 3.5 letters a time" in first
    assert "<b>1.800<small> ± 0.050</small></b>" in first
    assert "the best letter table (5-gram)" in first
    assert "<b>100</b><span>steps, the text read 12 times" in first
    assert "<b>4:59 min</b><span>on 2 CPU threads" in first


def test_a_real_run_begins_with_its_verdict(record):
    assert "On passages it never read, it hesitates between" in lead(record)


def test_a_stopped_run_says_so(tmp_path):
    assert "stopped after step 40 of 100; it can go on" in _lead(
        tmp_path, step(40), invented_run.finished(completed=False, step=40)
    )


def test_a_run_without_held_out_text_claims_nothing(tmp_path):
    ended = invented_run.finished(held_out=None, standard_error=None, held_out_odd=None, yardsticks={})
    first = _lead(tmp_path, step(100), ended, facts=FACTS | {"yardsticks": None})
    assert "nobody can tell" in first
    assert "bits per character on the text it read; none was held out" in first
    assert "letter table" not in first


def test_a_killed_run_tells_its_best_so_far(tmp_path):
    first = _lead(tmp_path, step(30), evaluated(10, held_out=3.0), evaluated(20, held_out=3.2), step(30))
    assert "After step 30 of 100, not at its end: at its best" in first
    assert "between 8.0 letters a time (step 10)" in first
    assert "<b>3.000<small>" in first


def test_a_run_killed_before_its_first_evaluation_says_that_nobody_can_tell(tmp_path):
    assert "before its first evaluation: how good it is, nobody can tell yet" in _lead(tmp_path, step(3))


@pytest.mark.parametrize("facts", [{}, FACTS])
def test_a_run_without_a_step_says_so(tmp_path, facts):
    assert "no step yet" in _lead(tmp_path, facts=facts)


def test_figures_that_an_earlier_version_did_not_write_are_left_unsaid(tmp_path):
    ended = invented_run.finished(yardsticks={name: FACTS["yardsticks"][name] for name in ("chance", "best_ngram")})
    assert "hesitates" in _lead(tmp_path, step(1), ended | {"yardsticks": FACTS["yardsticks"] | {"unseen": 0}})
    assert "cannot read from this run" in _lead(tmp_path, step(1), ended)
    assert "not at its end" in _lead(tmp_path, step(1), evaluated(1), {"event": "Finished", "completed": True})


def test_a_finished_of_another_version_is_read_without_what_is_new_in_it(tmp_path):
    record = invented_record(tmp_path / "run", invented_run.finished(new_in_version_9=1))
    assert finished(record).best_step == 100


def test_names_and_samples_are_text(tmp_path, hostile):
    facts = FACTS | {"data": FACTS["data"] | {"name": hostile}}
    record = invented_record(tmp_path / "run", step(1), invented_run.finished(sample=hostile), facts=facts)
    for part in (lead(record), closing_sample(record)):
        assert "&lt;script&gt;" in part
        assert "<script>" not in part
        assert "</div> " not in part.replace("</div></div>", "")


def test_the_closing_sample_is_shown_with_its_step_and_its_prompt(tmp_path):
    facts = FACTS | {"config": {"training": {"prompt": "Once"}}}
    shown = closing_sample(invented_record(tmp_path / "run", invented_run.finished(best_step=60), facts=facts))
    assert "a dog and the cat sat" in shown
    assert "after step 60; the prompt was " in shown


def test_a_long_sample_is_folded_at_a_space_and_nothing_of_it_is_lost(tmp_path):
    sample = " ".join(f"word{number}" for number in range(400))
    shown = closing_sample(invented_record(tmp_path / "run", invented_run.finished(sample=sample)))
    first, rest = shown.split("<details>")
    assert "word0" in first
    assert "word399" not in first
    assert "word399" in rest
    assert all(f"word{number}" in shown for number in range(400))


def test_a_long_sample_without_spaces_is_folded_too(tmp_path):
    shown = closing_sample(invented_record(tmp_path / "run", invented_run.finished(sample="中" * 2000)))
    assert shown.count("中") == 2000
    assert "<details>" in shown


def test_a_killed_run_shows_its_last_sample(tmp_path):
    shown = closing_sample(invented_record(tmp_path / "run", sampled(10, "first"), sampled(20, "second")))
    assert "second" in shown
    assert "after step 20" in shown


def test_without_a_sample_nothing_is_shown(tmp_path):
    assert closing_sample(invented_record(tmp_path / "run", step(1))) == ""
