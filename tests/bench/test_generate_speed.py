import importlib.util

import pytest

from pellucid.bench.generate_speed import bench_generate, bytes_per_token
from pellucid.bench.writers import PELLUCID
from pellucid.errors import UserError
from pellucid.model_config import ModelConfig
from tests.bench.small_run import make_run


def test_it_measures_a_run_and_agrees_with_itself(tmp_path):
    make_run(tmp_path / "run")
    report = bench_generate(tmp_path / "run", prompt_tokens=20, new_tokens=10, rounds=2)
    (row,) = report.rows
    assert (row.writer, row.precision) == (PELLUCID, "float32")
    assert row.prefill_ratio == row.decode_ratio == 1.0
    assert row.same_tokens == 10
    assert row.prefill_tokens_per_second == pytest.approx(20 / row.first_token_seconds)
    assert report.as_json()["rows"][0]["decode_tokens_per_second"] > 0


@pytest.mark.real
@pytest.mark.parametrize("peer", ["transformers", "llama.cpp"])
def test_a_peer_writes_the_same_tokens_from_the_same_weights(tmp_path, peer):
    if peer == "llama.cpp" and not importlib.util.find_spec("llama_cpp"):
        pytest.skip("llama-cpp-python is not installed")
    make_run(tmp_path / "run")
    report = bench_generate(tmp_path / "run", prompt_tokens=20, new_tokens=10, rounds=1, against=[peer])
    assert [row.same_tokens for row in report.rows] == [10, 10]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"against": ["vllm"]}, "transformers, llama.cpp"),
        ({"prompt_tokens": 60, "new_tokens": 10}, "at most 64"),
        ({"prompt_tokens": 0}, "1 or more"),
        ({"new_tokens": 1}, "2 or more"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_a_remedy(tmp_path, wrong, said):
    make_run(tmp_path / "run")
    with pytest.raises(UserError, match=said):
        bench_generate(tmp_path / "run", **{"prompt_tokens": 10, "new_tokens": 5, **wrong})


def test_a_peer_that_is_not_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match="pip install llama-cpp-python"):
        bench_generate(tmp_path, against=["llama.cpp"])


def test_a_token_needs_every_weight_but_a_table_of_which_it_reads_one_row():
    config = ModelConfig(vocab_size=100, d_model=8, num_heads=2, num_layers=3)
    tied = ModelConfig(vocab_size=100, d_model=8, num_heads=2, num_layers=3, tie_embeddings=True)
    assert bytes_per_token(tied, 5000, "float32", 0) - bytes_per_token(config, 5000, "float32", 0) == 3200
    assert bytes_per_token(config, 5000, "int8", 0) == 4200
    assert bytes_per_token(config, 5000, "bfloat16", 10) == 8400 + 2 * 3 * 8 * 10 * 2
