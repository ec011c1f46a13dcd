import pytest

from pellucid.compare import SeriesFile, StoppedRun, compare, write_series
from pellucid.compare.comparison import is_equal
from pellucid.errors import RunFolderError
from tests.compare.made_runs import made_run


def test_folders_of_runs_are_opened(tmp_path):
    made_run(tmp_path / "all" / "a-seed-0")
    made_run(tmp_path / "all" / "b-seed-0", model={"norm": "none"})
    comparison = compare([tmp_path / "all", tmp_path / "all" / "a-seed-0"])
    assert [group.name for group in comparison.groups] == ["a", "b"]
    assert comparison.baseline.name == "a"


def test_a_recipes_folder_says_which_runs_and_in_which_order(tmp_path):
    for name in ("a", "b", "old"):
        made_run(tmp_path / name, model={"norm_epsilon": len(name) / 7 + ord(name[0])})
    write_series(tmp_path, SeriesFile(runs=["b", "a", "not-yet"]))
    assert [group.name for group in compare([tmp_path]).groups] == ["b", "a"]


@pytest.mark.parametrize("given", [[], ["one"], ["one", "one"]])
def test_one_run_is_no_comparison(tmp_path, given):
    made_run(tmp_path / "one")
    with pytest.raises(RunFolderError, match="two runs or more"):
        compare([tmp_path / name for name in given])


def test_what_is_no_run_is_said(tmp_path):
    made_run(tmp_path / "one")
    with pytest.raises(RunFolderError, match="nothing there"):
        compare([tmp_path / "one", tmp_path / "nowhere"])


def test_the_same_batches_are_recognised_and_others_too(tmp_path):
    base = made_run(tmp_path / "base")
    same = compare([base, made_run(tmp_path / "bare", model={"norm": "none"})])
    assert same.same_batches
    for name, changes in {
        "seed": {"seed": 1, "model": {"norm": "none"}},
        "text": {"text": "c" * 64},
        "tokens": {"tokenizer": "c" * 64},
        "longer": {"model": {"context_length": 16}},
    }.items():
        assert not compare([base, made_run(tmp_path / name, **changes)]).same_batches, name


def test_no_difference_is_drawn_between_texts(tmp_path):
    comparison = compare([made_run(tmp_path / "a"), made_run(tmp_path / "b", text="c" * 64)])
    assert comparison.differences() == []


def test_the_first_variant_with_a_result_is_the_baseline(tmp_path):
    bad = made_run(tmp_path / "bad", bits=(900.0,) * 4)
    good = made_run(tmp_path / "good", model={"norm": "none"})
    assert compare([bad, good]).baseline.name == "good"


def test_costs_are_equal_or_not():
    assert is_equal("tokens", [160, 160])
    assert not is_equal("tokens", [160, 161])
    assert is_equal("FLOPs", [1e9, 1.005e9])
    assert not is_equal("seconds", [10, 11])


def test_the_json_has_every_reading(tmp_path):
    made_run(tmp_path / "a")
    made_run(tmp_path / "b", model={"norm": "none"})
    write_series(tmp_path, SeriesFile(runs=["a", "b", "c"], stopped={"c": StoppedRun("f", "It ended.")}))
    whole = compare([tmp_path]).as_json()
    assert [variant["name"] for variant in whole["variants"]] == ["a", "b"]
    assert len(whole["variants"][0]["runs"][0]["readings"]) == 2
    assert whole["differences"][0]["bits"] == 0.0
    assert whole["equal"] == {"steps": True, "tokens": True, "FLOPs": True, "seconds": True}
    assert whole["stopped"] == {"c": "It ended."}
