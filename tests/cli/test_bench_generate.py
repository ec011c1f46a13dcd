import json

import pytest

from pellucid.bench import GenerateReport, GenerateRow
from pellucid.cli.bench import main
from pellucid.cli.bench_generate import lines
from pellucid.errors import UserError
from tests.bench.small_run import make_run

ROW = {
    "writer": "pellucid",
    "precision": "int8",
    "prefill_tokens_per_second": 1659.0,
    "decode_tokens_per_second": 220.4,
    "first_token_seconds": 0.24,
    "prefill_ratio": 1.0,
    "decode_ratio": 1.0,
    "bytes_per_token": 155_000_000,
    "share_of_bandwidth": 0.61,
    "peak_bytes": 300_000_000,
    "opening_seconds": 0.6,
    "same_tokens": 100,
}
PEER = {
    **ROW,
    "writer": "llama.cpp",
    "precision": "q8_0",
    "prefill_ratio": 2.6,
    "decode_ratio": 2.84,
    "same_tokens": 38,
}
REPORT = GenerateReport(
    model="m",
    parameters=134_500_000,
    prompt_tokens=400,
    new_tokens=100,
    rounds=5,
    threads=2,
    bandwidth_bytes_per_second=56e9,
    rows=(GenerateRow(**ROW), GenerateRow(**PEER)),
)


def test_the_report_says_rates_bytes_and_how_it_compares():
    head, names, ours, peer, verdict = lines(REPORT)
    assert head.startswith("134.5 M parameters, 400 tokens read, 100 written, 2 threads")
    assert "56 GB/s" in head
    assert len(names) == len(ours) == len(peer)
    assert "1,659/s" in ours
    assert "220.4/s" in ours
    assert "2.84 times as fast; the first 38 tokens of 100 are the same." in verdict


def test_json_is_one_object(tmp_path, capsys):
    make_run(tmp_path / "run")
    words = ["generate", str(tmp_path / "run"), "--prompt-tokens", "9", "--new-tokens", "4", "--rounds", "1", "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["new_tokens"] == 4


def test_no_round_at_all_is_refused(tmp_path):
    with pytest.raises(UserError, match="rounds"):
        main(["generate", str(tmp_path), "--rounds", "0"])
