"""Exactly this run: command, hashes, versions, settings; and what the page reveals."""

import hashlib

from pellucid.report.identity import exactly, reveals
from tests.report.invented_run import FACTS, finished, invented_record


def test_the_hashes_are_those_of_the_files(record):
    told = exactly(record)
    for name in ("model.safetensors", "config.json", "tokenizer.json", "run.json"):
        assert hashlib.sha256((record.path / name).read_bytes()).hexdigest() in told
    assert record.fact("data", "fingerprint") in told
    assert record.fact("tokenizer", "fingerprint") in told


def test_the_command_can_be_pasted(tmp_path):
    assert "pellucid train &#x27;a book.txt&#x27; --minutes 5" in exactly(invented_record(tmp_path / "run"))


def test_versions_and_settings_are_told_and_what_is_empty_is_not(tmp_path):
    told = exactly(invented_record(tmp_path / "run"))
    assert "2.13.0" in told
    assert "yes" in told
    assert "device name" not in told
    assert "&quot;max_gradient_norm&quot;: 1.0" in told


def test_files_that_are_missing_have_no_hash(tmp_path):
    told = exactly(invented_record(tmp_path / "run"))
    assert "model.safetensors" not in told
    assert "run.json" in told


def test_a_run_without_facts_has_its_one_file(tmp_path):
    assert "run.json" in exactly(invented_record(tmp_path / "run", facts={}))


def test_what_stands_in_a_command_is_text(tmp_path, hostile):
    assert "<script>" not in exactly(invented_record(tmp_path / "run", facts=FACTS | {"command": ["x", hostile, 3]}))


def test_whoever_shares_the_page_is_told_what_it_reveals(tmp_path):
    told = reveals(invented_record(tmp_path / "run", finished()))
    for words in ("names of its files", "alphabet", "what the model wrote", "held-out passages", "so is this page"):
        assert words in told
