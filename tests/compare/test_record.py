import pytest

from pellucid.compare import read_run
from pellucid.errors import RunFolderError
from tests.compare.made_runs import evaluated, made_run, steps


def test_a_run_is_read_with_its_costs(tmp_path):
    run = read_run(made_run(tmp_path / "a", seed=3))
    assert (run.name, run.seed, run.step, run.completed, run.diverged) == ("a", 3, 10, True, "")
    assert [reading.step for reading in run.readings] == [5, 10]
    assert run.best == run.readings[1]
    assert run.tokens == 160
    assert run.flops == 160 * 1968
    assert run.seconds == pytest.approx(1.6)
    assert run.readings[0].seconds == pytest.approx(0.8)


def test_the_best_reading_is_the_last_that_was_best_then(tmp_path):
    events = [evaluated(5, [1, 1, 1, 1]), evaluated(10, [2, 2, 2, 2], is_best=False)]
    run = read_run(made_run(tmp_path / "a", events=events))
    assert run.best == run.readings[0]
    assert not run.completed


def test_seconds_go_on_where_a_run_was_taken_up_again(tmp_path):
    events = [*steps(1, 5, rate=16.0), {"event": "Resumed", "step": 5}, *steps(6, 10, rate=8.0)]
    assert read_run(made_run(tmp_path / "a", events=events)).seconds == pytest.approx(5 + 10)


def test_a_run_that_skipped_to_its_end_has_diverged(tmp_path):
    events = [*steps(1, 5), evaluated(5, [1, 1, 1, 1]), *steps(6, 15, skipped=True)]
    assert read_run(made_run(tmp_path / "a", events=events)).diverged.startswith("diverged at step 6:")
    events += steps(16, 16)
    assert read_run(made_run(tmp_path / "b", events=events)).diverged == ""


def test_a_run_that_ends_worse_than_chance_has_diverged(tmp_path):
    run = read_run(made_run(tmp_path / "a", bits=(700.0, 700.0, 700.0, 700.0)))
    assert run.diverged == "diverged: 7.00 bits per character at step 10, chance is 6.00"


def test_only_what_changes_figures_is_a_setting(tmp_path):
    settings = read_run(made_run(tmp_path / "a")).settings()
    assert settings["model.norm"] == "rms"
    assert settings["steps"] == 10
    assert not {"training.seed", "training.precision", "training.keep", "training.minutes"} & settings.keys()


def test_a_folder_without_a_plan_is_refused(tmp_path):
    (tmp_path / "run.json").write_text("{}", encoding="utf-8")
    with pytest.raises(RunFolderError, match="has begun to train"):
        read_run(tmp_path)


def test_a_model_that_was_imported_is_said_to_be_one(tmp_path):
    (tmp_path / "run.json").write_text('{"imported": {"kind": "a GGUF file"}}', encoding="utf-8")
    with pytest.raises(RunFolderError, match="got a model that was imported"):
        read_run(tmp_path)


@pytest.mark.parametrize("odd", ["oops", [2.0]])
def test_metrics_of_another_kind_are_a_sentence(tmp_path, odd):
    path = made_run(tmp_path / "run", events=[evaluated(5, [100] * 4) | {"held_out": odd}])
    with pytest.raises(RunFolderError, match="as training wrote them"):
        read_run(path)


def test_what_is_no_event_or_no_number_is_passed_over(tmp_path):
    path = made_run(tmp_path / "run", events=[[1], None, evaluated(5, [100] * 4), evaluated(10, [float("nan")] * 4)])
    assert [reading.step for reading in read_run(path).readings] == [5]
