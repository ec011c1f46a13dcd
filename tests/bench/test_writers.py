import pytest
import torch

from pellucid.bench.writers import PELLUCID, Job, OurWriter, WriterProcess
from pellucid.errors import PellucidError
from pellucid.generate import generate_naively, likeliest
from tests.bench.small_run import make_run


def test_ours_writes_greedily_and_tells_times_apart(tmp_path):
    model = make_run(tmp_path / "run")
    written = OurWriter(Job(PELLUCID, str(tmp_path / "run"), "auto", 1, 40)).write([1, 2, 3], 12)
    assert list(written.token_ids) == generate_naively(model, [1, 2, 3], likeliest, 12)
    assert written.first_seconds > 0
    assert written.rest_seconds > 0


def test_a_process_of_its_own_answers_and_says_what_went_wrong(tmp_path):
    make_run(tmp_path / "run")
    process = WriterProcess(Job(PELLUCID, str(tmp_path / "run"), "int8", 1, 40))
    try:
        assert len(process.write([1, 2, 3], 5).token_ids) == 5
        assert process.peak_bytes() >= 0
        with pytest.raises(PellucidError, match="id"):
            process.write([10**6], 5)
    finally:
        process.close()
    assert torch.get_num_threads() > 0


def test_a_model_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(PellucidError, match="leave it out"):
        WriterProcess(Job(PELLUCID, str(tmp_path / "none"), "auto", 1, 40))
