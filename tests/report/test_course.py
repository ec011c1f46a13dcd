"""Plan and what happened."""

from pellucid.report.course import course
from pellucid.report.record import read_record
from tests.report.invented_run import FACTS, evaluated, finished, invented, invented_record, step


def test_a_real_run_has_its_plan_beside_what_happened(record):
    told = course(record)
    assert '<td>steps</td><td class="number">12</td><td class="number">12</td>' in told
    assert "A step is 64 tokens in 4 rows" in told
    assert "3 evaluations took" in told


def test_planned_and_happened_stand_side_by_side(tmp_path):
    told = course(invented_record(tmp_path / "run", step(50), step(100), finished(peak_memory_bytes=250_000_000)))
    for row in (
        "<td>steps</td><td>100</td><td>100</td>",
        "<td>seconds a step</td><td>0.250</td><td>0.341</td>",
        "<td>tokens a second</td><td>16,384</td><td>12,000</td>",
        "<td>readings of the text</td><td>20.0</td><td>12.0</td>",
        "<td>time in all</td><td>5:00 min</td><td>4:59 min</td>",
        "<td>memory</td><td>300 MB</td><td>250 MB</td>",
    ):
        assert row in told.replace(' class="number"', "")
    assert "A step is 4,096 tokens in 16 rows, 4 at a time; " in told


def test_everything_on_the_way_is_told(tmp_path):
    record = invented_record(
        tmp_path / "run",
        {"event": "VariantTried", "variant": "float32", "admitted": True, "step_seconds": 0.3},
        {"event": "VariantTried", "variant": "bfloat16", "admitted": False, "reason": "the loss <differs>"},
        step(1),
        step(2, skipped=True),
        evaluated(2),
        {"event": "Saved", "step": 2},
        {"event": "Resumed", "step": 2, "note": "torch is 3"},
        {"event": "Replanned", "step": 2, "old_steps": 100, "new_steps": 80, "step_seconds": 0.3},
        {"event": "CoolingDown", "step": 60, "steps": 70},
    )
    told = course(record)
    for words in (
        'Tried <bdi dir="auto">float32: 0.300 s a step</bdi>.',
        "bfloat16, not used: the loss &lt;differs&gt;",
        "Gone on from step 2",
        "torch is 3",
        "Planned again at step 2: 80 steps instead of 100",
        "Asked to stop at step 60: the learning rate fell to its end by step 70.",
        "1 step skipped",
        "1 evaluation took 2 s in all; 1 checkpoint saved.",
    ):
        assert words in told


def test_lines_that_could_not_be_read_are_told(tmp_path):
    folder = invented(tmp_path / "run", step(1))
    folder.metrics_path.write_text("half\n")
    assert "1 line of metrics.jsonl could not be read" in course(read_record(folder))


def test_a_run_on_a_gpu_names_it(tmp_path):
    facts = FACTS | {"plan": FACTS["plan"] | {"device": "cuda"}}
    assert "compiled, on cuda." in course(invented_record(tmp_path / "run", facts=facts))


def test_a_run_without_a_plan_says_so(tmp_path):
    assert "ended before its plan was made" in course(invented_record(tmp_path / "run", facts={}))


def test_a_plan_that_is_half_there_is_shown_as_far_as_it_goes(tmp_path):
    told = course(invented_record(tmp_path / "run", facts={"plan": {"steps": 100, "step_seconds": 0}}))
    assert "nan" not in told
    assert ">100<" in told
