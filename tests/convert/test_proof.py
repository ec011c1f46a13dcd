import json
from dataclasses import replace

import numpy as np
import pytest

from pellucid.convert import proof
from pellucid.convert.proof import Passage, Read, ask, close, compared, letter_of, prove_here
from pellucid.errors import ExportError
from pellucid.text import character_tokenizer, train_byte_pairs
from tests.convert.outgoing_models import SHAPES, byte_pairs, letters, made, outgoing, passage


@pytest.fixture(scope="module")
def model():
    return made(SHAPES["qwen3"])


def as_read(model, **more):
    return Read(**{"model": model, "tokenizer": byte_pairs(), "end_ids": {0}, "chat_template": None, **more})


def test_what_is_read_as_it_was_written_passes(model):
    out = outgoing(model)
    prove_here(as_read(model), out, out.tensors.__getitem__)


def test_another_theta_is_seen(model):
    other = made(replace(SHAPES["qwen3"], rope_theta=20_000.0))
    with pytest.raises(ExportError, match=r"rope_theta=10000.0 .* got 20000.0"):
        prove_here(as_read(other), outgoing(model), outgoing(model).tensors.__getitem__)


def test_another_weight_is_seen_and_named(model):
    out = outgoing(model)
    expected = dict(out.tensors)
    expected["blocks.1.attention.output.weight"] = expected["blocks.1.attention.output.weight"].flip(0)
    with pytest.raises(ExportError, match=r"the weights blocks\.1\.attention\.output\.weight as they were"):
        prove_here(as_read(model), out, expected.__getitem__)


def test_another_tokenizer_is_seen(model):
    other = train_byte_pairs(["quick brown foxes " * 9], 280)
    with pytest.raises(ExportError, match="the ids of"):
        prove_here(as_read(model, tokenizer=other), outgoing(model), outgoing(model).tensors.__getitem__)


def test_a_missing_end_is_seen(model):
    out = outgoing(model, end_ids=frozenset({5}))
    with pytest.raises(ExportError, match=r"every id that ends a text .* not \[5\]"):
        prove_here(as_read(model), out, out.tensors.__getitem__)


def test_a_lost_chat_template_is_seen(model):
    out = outgoing(model, chat_template="{{ messages }}")
    with pytest.raises(ExportError, match="chat template"):
        prove_here(as_read(model), out, out.tensors.__getitem__)


def answer(model, **more):
    tokenizer = byte_pairs()
    ids = [tokenizer.encode(text).tolist() for text in proof.encodable(tokenizer)]
    told = {"ids": ids, "begun": tokenizer.encode("a").tolist(), "ends": [0], "unfit": [], "chat_template": None}
    return {**told, **more}


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"begun": [0, 66]}, "what is put before every text"),
        ({"ends": [3]}, "every id that ends"),
        ({"unfit": ["lm_head.weight"]}, "all weights in their places .* lm_head.weight"),
        ({"chat_template": "x"}, "chat template"),
    ],
)
def test_what_another_program_has_otherwise_is_named(model, other, said):
    logits = np.random.default_rng(0).normal(size=(9, 280)).astype(np.float32)
    compared("peer", outgoing(model), logits, (answer(model), logits + 1e-5), 1e-3)
    with pytest.raises(ExportError, match=f"{said}.*"):
        compared("peer", outgoing(model), logits, (answer(model, **other), logits), 1e-3)


def test_other_ids_are_shown_from_where_they_differ(model):
    ids = answer(model)["ids"]
    ids[3] = [*ids[3][:2], 7, *ids[3][3:]]
    with pytest.raises(ExportError, match=r"\[7, .* from token 2 on"):
        compared("peer", outgoing(model), np.ones((1, 280)), (answer(model, ids=ids), np.ones((1, 280))), 1e-3)


@pytest.mark.parametrize("wrong", [0.01, float("nan"), float("inf")])
def test_logits_too_far_apart_are_refused(wrong):
    ours = np.tile(np.array([[-1.0, 1.0]], dtype=np.float32), (5, 1))
    theirs = ours.copy()
    theirs[3, 0] += wrong
    assert close("peer", ours, ours + np.float32(1e-5), 1e-3, texts=0).difference < 2e-5
    with pytest.raises(ExportError, match="logits at most"):
        close("peer", ours, theirs, 1e-3, texts=0)


def test_a_program_that_fails_says_why(tmp_path, monkeypatch):
    (tmp_path / "in_peer.py").write_text("raise ValueError('no such weight')")
    monkeypatch.setattr(proof, "__file__", str(tmp_path / "proof.py"))
    with pytest.raises(ExportError, match=r"files that others can read when .* by peer, but got ValueError: no such w"):
        ask("in_peer.py", tmp_path, {}, tmp_path)


def test_a_program_that_cannot_run_here_is_no_fault_of_the_files(tmp_path, monkeypatch):
    (tmp_path / "program.py").write_text("import x_that_is_nowhere")
    monkeypatch.setattr(proof, "__file__", str(tmp_path / "proof.py"))
    assert ask("program.py", tmp_path, {}, tmp_path) == "No module named 'x_that_is_nowhere'"


def test_a_program_that_is_killed_is_no_fault_of_the_files(tmp_path, monkeypatch):
    (tmp_path / "program.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    monkeypatch.setattr(proof, "__file__", str(tmp_path / "proof.py"))
    assert "killed" in ask("program.py", tmp_path, {}, tmp_path)


def test_a_passage_is_cut_to_the_context_and_to_the_memory():
    ids = range(3000)
    assert [len(row) for row in Passage(ids, "").rows(100, 1000)] == [100] * 5 + [12]
    assert sum(map(len, Passage(ids, "").rows(50, 200_000))) == 80
    assert sum(map(len, Passage(ids, "").rows(50, 2_000_000))) == 64
    assert json.dumps(passage().rows(10, 280)), "plain numbers, whatever they came as"


def test_a_letter_is_found_in_any_vocabulary():
    assert letter_of(byte_pairs()) == letter_of(letters()) == "a"
    assert letter_of(character_tokenizer(["中"])) == "中"
