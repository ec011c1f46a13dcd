from pellucid.compare import SeriesFile, StoppedRun, compare, lines, write_series
from pellucid.compare.in_words import fairness, shown_settings, verdicts, warnings
from tests.compare.made_runs import made_run, steps


def two(folder, *, seeds=(0,), bits=(201.0, 211.5, 191.0, 206.5), **changes):
    made = [made_run(folder / f"base-seed-{seed}", seed=seed) for seed in seeds]
    made += [made_run(folder / f"other-seed-{seed}", seed=seed, bits=bits, **changes) for seed in seeds]
    return compare(made)


def test_a_difference_larger_than_its_error_is_called_so(tmp_path):
    (said, *_) = verdicts(two(tmp_path, model={"norm": "none"}))
    assert said.startswith(
        "other is 0.012 bits per character worse than base (0.008 to 0.017 at 95 %; 4 passages x 1 s"
    )
    assert said.endswith("paired): larger than its error.")


def test_a_better_one_too(tmp_path):
    (said, *_) = verdicts(two(tmp_path, bits=(190.0, 200.5, 180.0, 195.5), model={"norm": "none"}))
    assert "other is 0.098 bits per character better than base (0.093 to 0.102 at 95 %" in said


def test_a_smaller_one_cannot_be_told_apart(tmp_path):
    (said, *_) = verdicts(two(tmp_path, bits=(205.0, 200.0, 195.0, 207.0), model={"norm": "none"}))
    assert said.startswith("other and base cannot be told apart: 0.005 bits per character worse, and anything from")


def test_one_seed_is_said_to_be_one(tmp_path):
    assert verdicts(two(tmp_path, model={"norm": "none"}))[-1].startswith("One seed each")
    assert not verdicts(two(tmp_path / "more", seeds=(0, 1), model={"norm": "none"}))[-1].startswith("One seed")


def test_many_intervals_are_warned_of(tmp_path):
    runs = [made_run(tmp_path / "base")]
    runs += [made_run(tmp_path / f"v{n}", model={"norm_epsilon": 1 / n}, bits=(300.0,) * 4) for n in range(2, 6)]
    assert any(said.startswith("Of 4 intervals at 95 %") for said in verdicts(compare(runs)))


def test_what_diverged_is_told_and_the_rest_compared(tmp_path):
    comparison = compare(
        [
            made_run(tmp_path / "base"),
            made_run(tmp_path / "bare", model={"norm": "none"}, events=steps(1, 12, skipped=True)),
        ]
    )
    assert "bare diverged at step 1: no finite loss or gradient from there on." in verdicts(comparison)
    assert any(line.startswith("bare") and "diverged" in line for line in lines(comparison))


def test_a_run_that_left_no_folder_is_a_row_all_the_same(tmp_path):
    made_run(tmp_path / "base")
    stopped = {"hot-seed-0": StoppedRun("f", "Expected this, but got that: do so.")}
    write_series(tmp_path, SeriesFile(runs=["base", "hot-seed-0"], stopped=stopped))
    comparison = compare([tmp_path])
    assert "hot-seed-0 ended before anything was saved. Expected this, but got that: do so." in verdicts(comparison)
    assert any(line.startswith("hot-seed-0") and "no result" in line for line in lines(comparison))


def test_what_was_equal_is_said(tmp_path):
    costs, batches = fairness(two(tmp_path, seeds=(0, 1), model={"norm": "none"}, rate=50.0))
    assert costs == "Equal: steps (10), tokens (160), FLOPs (314,880). Not equal: seconds (1.6 to 3.2)."
    assert batches == "The same batches for all: same text, split and tokenizer, 2 x 8 tokens a step, seeds 0, 1."


def test_other_batches_are_named(tmp_path):
    said = fairness(two(tmp_path, model={"context_length": 16}, tokenizer="c" * 64))
    assert "Not the same batches: another tokenizer, another context_length." in said


def test_other_texts_and_tokenizers_are_warned_of(tmp_path):
    assert warnings(two(tmp_path / "1", text="c" * 64))[0].startswith("Careful: the texts are not the same")
    assert warnings(two(tmp_path / "2", tokenizer="c" * 64))[0].startswith("Tokenizers are not the same")
    assert warnings(two(tmp_path / "3", model={"norm": "none"})) == []


def test_unfinished_runs_are_named(tmp_path):
    comparison = two(tmp_path, model={"norm": "none"}, events=steps(1, 4))
    assert warnings(comparison) == ["other-seed-0 has done 4 of 10 steps."]


def test_settings_are_shown_without_hashes_and_long_digits(tmp_path):
    comparison = two(tmp_path, text="c" * 64, optimizer={"matrix_learning_rate": 1 / 3})
    assert shown_settings(comparison) == {"optimizer.matrix_learning_rate": ["0.02", "0.3333"]}


def test_one_seed_is_said_to_be_one_where_the_seeds_are_others(tmp_path):
    runs = [made_run(tmp_path / "base"), made_run(tmp_path / "other", seed=1, model={"norm": "none"})]
    assert verdicts(compare(runs))[-1].startswith("One seed each")
