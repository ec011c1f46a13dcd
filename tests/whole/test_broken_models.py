"""Damaged model files: a sentence, or a model; never a traceback, never more memory than the file has bytes for."""

import json
import random
import struct

import numpy as np
import pytest
import torch

import pellucid
from pellucid.checkpoint import write_model
from pellucid.errors import ConfigError, ModelFileError, UserError
from pellucid.model_config import MOST_LAYERS, ModelConfig
from pellucid.nn import TransformerLM
from pellucid.text import character_tokenizer
from tests.convert.written_gguf import random_tensors, shapes, write_llama

COUNTS = (0, 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**64 - 1, 10**12)


def damaged(data, start, drawn):
    """The bytes of a file with one thing wrong before its weights."""
    data, place = bytearray(data), drawn.randrange(start - 8)
    match drawn.randrange(5):
        case 0:
            data[place] ^= 1 << drawn.randrange(8)
        case 1:
            data[place : place + 8] = struct.pack("<Q", drawn.choice(COUNTS))
        case 2:
            del data[place : place + drawn.randint(1, 30)]
        case 3:
            data[place:place] = drawn.randbytes(drawn.randint(1, 20))
        case 4:
            del data[drawn.randrange(len(data)) :]
    return bytes(data)


def test_a_damaged_gguf_file_is_refused_in_a_sentence_or_makes_a_model_of_numbers(tmp_path):
    whole = write_llama(tmp_path / "whole.gguf").read_bytes()
    start = 3008  # where the weights begin
    drawn, refused, longest, path = random.Random(3), 0, 0, tmp_path / "damaged.gguf"
    for _ in range(400):
        path.write_bytes(damaged(whole, start, drawn))
        try:
            model = pellucid.load(path).model
        except UserError as error:
            refused, longest = refused + 1, max(longest, len(str(error)))
        else:
            assert all(torch.isfinite(weight).all() for weight in model.parameters())
    assert refused > 300
    assert longest < 1500


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_weight_that_is_no_number_is_refused_by_name(tmp_path, value):
    broken = random_tensors(shapes())["blk.1.ffn_up.weight"]
    broken[3, 5] = value
    with pytest.raises(ModelFileError, match=r"numbers in blk\.1\.ffn_up\.weight .* NaN or infinity"):
        pellucid.load(write_llama(tmp_path / "model.gguf", more_tensors={"blk.1.ffn_up.weight": broken}))
    huge = np.full_like(broken, 3e38)  # their sum is infinite, and they are not
    assert pellucid.load(write_llama(tmp_path / "huge.gguf", more_tensors={"blk.1.ffn_up.weight": huge}))


def own_model(folder, change):
    tokenizer = character_tokenizer(["to be or not"])
    config = ModelConfig(vocab_size=tokenizer.vocab_size, d_model=32, num_heads=2, num_layers=1)
    tensors = TransformerLM(config).state_dict()
    folder.mkdir()
    write_model(folder, tensors, config)
    tokenizer.save(folder / "tokenizer.json")
    change(folder)
    return folder


def test_an_own_model_with_a_weight_that_is_no_number_is_refused(tmp_path):
    def change(folder):
        path = folder / "model.safetensors"
        path.write_bytes(path.read_bytes()[:-4] + struct.pack("<f", float("nan")))

    with pytest.raises(ModelFileError, match="NaN or infinity"):
        pellucid.load(own_model(tmp_path / "run", change))


@pytest.mark.parametrize(("field", "value"), [("num_layers", 9_999), ("d_ff", 2**24), ("vocab_size", 2**31 - 1)])
def test_sizes_that_the_weights_do_not_have_take_no_memory(tmp_path, field, value):
    def change(folder):
        described = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        described["model"][field] = value
        (folder / "config.json").write_text(json.dumps(described), encoding="utf-8")

    with pytest.raises(ModelFileError, match=r"9,999 layers|has shape"):
        pellucid.load(own_model(tmp_path / "run", change))


@pytest.mark.parametrize("field", ["num_layers", "d_model", "d_ff", "d_head", "vocab_size", "context_length"])
def test_no_description_asks_for_more_than_any_machine_has(field):
    with pytest.raises(ConfigError, match=f"{field} of at most"):
        ModelConfig(**{"d_head": 32, field: 10**12})
    assert ModelConfig(num_layers=MOST_LAYERS).num_layers == MOST_LAYERS


@pytest.mark.parametrize("text", [b'{"a":' * 5000, b"[" * 100_000, b"", b"null", b"\xff\xfe"])
def test_a_config_json_that_is_none_is_refused(tmp_path, text):
    with pytest.raises(UserError):
        pellucid.load(own_model(tmp_path / "run", lambda folder: (folder / "config.json").write_bytes(text)))


def test_more_layers_than_anyone_has_are_refused_before_lists_are_made_of_them(tmp_path):
    described = {"model_type": "llama", "num_hidden_layers": 10**12, "vocab_size": 9, "hidden_size": 32}
    described |= {"intermediate_size": 64, "num_attention_heads": 2, "max_position_embeddings": 64}

    def change(folder):
        (folder / "config.json").write_text(json.dumps(described), encoding="utf-8")

    with pytest.raises(ModelFileError, match="at most 10,000 layers"):
        pellucid.load(own_model(tmp_path / "folder", change))
