"""`pellucid bench train`: its flags, its table, its JSON."""

import json

import pytest

import pellucid.bench
from pellucid.bench import SpeedReport, SpeedRow
from pellucid.cli import bench
from pellucid.cli.arguments import parse
from pellucid.errors import UserError

SIZES = {"num_layers": 4, "d_model": 128, "num_heads": 4, "context_length": 64, "vocab_size": 65, "batch_size": 12}


def _report(**changes):
    rows = [
        SpeedRow(name="plain torch.nn loop", ratio=1.0, step_seconds=0.035, tokens_per_second=21942.9),
        SpeedRow(name="float32, fused attention, compiled", refused="it could not be compiled (no compiler)"),
        SpeedRow(
            name="bfloat16, written-out attention, compiled",
            ratio=2.88,
            step_seconds=0.0122,
            tokens_per_second=62950.8,
            flop_per_second=310e9,
            share_of_ceiling=0.36,
            peak_bytes=41_000_000,
            first_step_seconds=21.0,
            planned=True,
        ),
    ]
    ceilings = {"float32": 2.1e11, "bfloat16": 8.5e11}
    whole = {"sizes": SIZES, "threads": 2, "steps": 30, "flop_per_step": 3_800_000_000, "ceilings": ceilings}
    return SpeedReport(**{**whole, "rows": rows, **changes})


@pytest.fixture
def measured(monkeypatch):
    """What would have been measured; the figures are made up."""
    asked = {}

    def stand_in(load, **rest):
        asked.update(load=load, **rest)
        rest["say"]("measuring")
        return asked.get("report", _report())

    monkeypatch.setattr(pellucid.bench, "bench_train", stand_in)
    return asked


def test_without_flags_the_small_gpt2_is_measured(measured):
    assert bench.main(["train"]) == 0
    config = measured["load"].config
    assert (config.num_layers, config.d_model, config.num_heads) == (4, 128, 4)
    assert (config.context_length, config.vocab_size, measured["load"].batch_size) == (64, 65, 12)
    assert config.dropout == 0
    assert measured["load"].optimizer.matrix_algorithm == "adamw"
    assert measured["steps"] == 60


def test_sizes_are_what_the_flags_say(measured):
    words = "train --model.num-layers 6 --model.d-model 384 --model.num-heads 6 --context 256 --batch 16 --vocab 99"
    bench.main(words.split())
    config = measured["load"].config
    assert (config.num_layers, config.d_model, config.num_heads) == (6, 384, 6)
    assert (config.context_length, config.vocab_size, measured["load"].batch_size) == (256, 99, 16)


def test_the_default_preset_is_trains_recipe_with_muon(measured):
    bench.main(["train", "--preset", "default", "--steps", "2"])
    assert measured["load"].config.positions == "rope"
    assert measured["load"].optimizer.matrix_algorithm == "muon"
    assert measured["steps"] == 2


def test_each_number_type_is_measured_eager_and_compiled_the_plainest_first():
    chosen = [str(variant) for variant in bench.variants(parse(bench.BenchTrainFlags, [], "bench train"))]
    assert chosen == [
        f"{precision}, written-out attention, {how}"
        for how in ("eager", "compiled")
        for precision in ("float32", "bfloat16")
    ]


def test_peers_bring_the_other_attention_path_and_torchs_own_switches(measured):
    bench.main(["train", "--peers"])
    assert measured["peers"]
    assert len(measured["variants"]) == 8


def test_the_table_has_a_line_for_each_and_says_whom_the_planner_chooses(measured, capsys):
    bench.main(["train"])
    told = capsys.readouterr()
    lines = told.out.splitlines()
    assert len(lines) <= 12
    assert lines[0].startswith("4 layers × 128, 4 heads, context 64, batch 12, vocabulary 65: 3.8 GFLOP a step")
    assert "float32 210, bfloat16 850 GFLOP/s" in lines[1]
    assert "refused: it could not be compiled (no compiler)" in lines[4]
    assert "2.88×" in lines[5]
    assert lines[5].endswith("◀ the planner's")
    assert lines[-1].startswith("The planner chooses bfloat16, written-out attention, compiled: 2.88 times")
    assert told.err == "measuring\n"


def test_a_better_one_than_the_planners_is_named(capsys):
    rows = [SpeedRow(name="plain", ratio=1.0), SpeedRow(name="quick", ratio=3.0)]
    rows.append(SpeedRow(name="chosen", ratio=2.0, planned=True))
    assert bench.lines(_report(rows=rows))[-1].endswith("quick was 1.50 times faster still.")


def test_json_is_all_of_standard_output(measured, capsys):
    bench.main(["train", "--json"])
    told = capsys.readouterr()
    assert json.loads(told.out)["rows"][2]["ratio"] == 2.88
    assert told.err == ""


def test_a_loss_that_is_another_is_shown_and_is_a_failure(measured, capsys):
    measured["report"] = _report(rows=[SpeedRow(name="odd", loss=3.0, agrees=False, planned=True)])
    assert bench.main(["train"]) == 1
    assert "loss 3.0000: not the first row's" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["write"], ["--steps", "3"]])
def test_what_to_measure_has_to_be_said(words):
    with pytest.raises(UserError, match="say pellucid bench train"):
        bench.main(words)


@pytest.mark.parametrize("flag", ["--steps", "--batch"])
def test_nothing_cannot_be_measured(flag):
    with pytest.raises(UserError, match=f"{flag} of 1 or more"):
        bench.main(["train", flag, "0"])


def test_an_unknown_flag_gets_a_suggestion():
    with pytest.raises(UserError, match="perhaps you meant --steps"):
        bench.main(["train", "--step", "3"])


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"]])
def test_help_needs_no_torch(words, capsys):
    with pytest.raises(SystemExit) as ended:
        bench.main(words)
    assert ended.value.code == 0
    assert "--preset" in capsys.readouterr().out
