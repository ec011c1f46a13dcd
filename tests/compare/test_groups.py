import pytest

from pellucid.compare import grouped, read_run
from pellucid.compare.groups import differing
from tests.compare.made_runs import evaluated, made_run


def groups(*paths):
    return grouped([read_run(path) for path in paths])


def test_runs_that_differ_in_their_seed_alone_are_one_variant(tmp_path):
    found = groups(
        made_run(tmp_path / "base-seed-1", seed=1),
        made_run(tmp_path / "bare-seed-0", model={"norm": "none"}),
        made_run(tmp_path / "base-seed-0", seed=0),
    )
    assert [(group.name, [run.seed for run in group.runs]) for group in found] == [("base", [0, 1]), ("bare", [0])]


def test_a_variant_has_a_mean_and_a_spread(tmp_path):
    (group,) = groups(
        made_run(tmp_path / "a-0", seed=0, bits=(200.0,) * 4), made_run(tmp_path / "a-1", seed=1, bits=(204.0,) * 4)
    )
    assert group.held_out == pytest.approx(2.02)
    assert group.spread == pytest.approx(0.02 * 2**0.5)
    assert group.standard_error == pytest.approx(0.05)


def test_one_seed_has_no_spread_and_a_diverged_run_no_part_in_the_mean(tmp_path):
    (group,) = groups(made_run(tmp_path / "a", seed=0), made_run(tmp_path / "b", seed=1, bits=(700.0,) * 4))
    assert group.spread is None
    assert group.held_out == pytest.approx(2.0125)


def test_what_differs_is_found_and_nothing_else(tmp_path):
    found = groups(
        made_run(tmp_path / "a"),
        made_run(tmp_path / "b", model={"norm": "none"}, optimizer={"matrix_learning_rate": 0.5}),
    )
    assert differing(found) == {"model.norm": ["rms", "none"], "optimizer.matrix_learning_rate": [0.02, 0.5]}


def test_variants_of_one_name_are_told_apart_by_their_paths(tmp_path):
    found = groups(made_run(tmp_path / "x" / "run"), made_run(tmp_path / "y" / "run", model={"norm": "none"}))
    assert [group.name for group in found] == [str(tmp_path / "x" / "run"), str(tmp_path / "y" / "run")]


def test_a_run_without_a_score_has_no_mean(tmp_path):
    (group,) = groups(made_run(tmp_path / "a", events=[]))
    assert (group.held_out, group.standard_error, group.spread) == (None, None, None)
    (group,) = groups(made_run(tmp_path / "b", events=[evaluated(5, [100] * 4)]))
    assert group.held_out == 1.0


def test_no_two_variants_have_one_name(tmp_path):
    found = groups(
        made_run(tmp_path / "book-01", seed=1),
        made_run(tmp_path / "book-02", seed=2),
        made_run(tmp_path / "book", model={"norm": "none"}),
    )
    assert [group.name for group in found] == ["book-01, book-02", "book"]


def test_the_same_run_twice_is_no_second_seed(tmp_path):
    found = groups(made_run(tmp_path / "a"), made_run(tmp_path / "b"), made_run(tmp_path / "c", seed=1))
    assert [[run.name for run in group.runs] for group in found] == [["a", "c"], ["b"]]
