"""A Hugging Face folder, written: what AutoModelForCausalLM and AutoTokenizer open, with nothing of ours.

    config.json               the family and its sizes, both spellings of theta
    model.safetensors         the weights, or shards of up to 5 GB and an index; a tied head is stored once
    generation_config.json    every id that ends what the model writes
    tokenizer.json            the tokenizer, to the letter
    tokenizer_config.json     which class opens it, and which of its tokens begin and end a text
    chat_template.jinja       how a chat becomes one text, if the model has that

In: `Outgoing`, a number type, an empty folder.  Out: files.  Used by: export.  Read next: gguf_description.py.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pellucid.checkpoint import write_tensors
from pellucid.convert.beside_weights import GENERATION_CONFIG, TEMPLATE, TOKENIZER_CONFIG
from pellucid.convert.gguf_vocabulary import QWEN2_SPLIT, Rule
from pellucid.convert.huggingface import CONFIG, INDEX, WEIGHTS
from pellucid.convert.huggingface_description import describe
from pellucid.convert.names import to_theirs
from pellucid.convert.outgoing import NUMBER_TYPES, Outgoing, converted
from pellucid.convert.word_rules import words_of
from pellucid.errors import ModelFileError
from pellucid.text.definition import KNOWN_ENDS

SHARD_BYTES = 5_000_000_000
"""As transformers cuts: single files beyond this are awkward to move."""


def write_hugging_face(folder: Path, model: Outgoing, number_type: str, *, shard_bytes: int = SHARD_BYTES) -> None:
    """Write the files.

    Args:
        folder: An empty folder.
        model: What to write.
        number_type: float32, bfloat16 or float16.
        shard_bytes: Where a file of weights ends and the next begins.

    Raises:
        ModelFileError: if no family can be this model, or the type cannot hold its weights.
    """
    family, fields = describe(model.config)
    tensors = to_theirs(model.tensors, family.weights, model.config)
    _write_weights(folder, tensors, NUMBER_TYPES[number_type], shard_bytes)
    ends = {
        "bos_token_id": model.tokenizer.start_id,
        "eos_token_id": list(model.end_ids) if len(model.end_ids) > 1 else model.end_ids[0],
        "pad_token_id": model.tokenizer.end_of_text_id,
    }
    _write_json(folder / CONFIG, {**fields, "torch_dtype": number_type, **ends, "use_cache": True})
    _write_json(folder / GENERATION_CONFIG, {**ends, **_unused(model)})
    (folder / "tokenizer.json").write_bytes(model.tokenizer.definition.encode("utf-8"))
    _write_json(folder / TOKENIZER_CONFIG, _tokenizer_config(model))
    if model.chat_template is not None:
        (folder / TEMPLATE).write_bytes(model.chat_template.encode("utf-8"))


def with_family_for_its_tokenizer(model: Outgoing) -> Outgoing:
    """The same model of a family whose folders AutoTokenizer opens with the tokenizer that is in them.

    It opens every folder of Qwen2's with Qwen2's own rule for words, whatever tokenizer.json says. With biases that are
    0 the model is a Llama.

    Raises:
        ModelFileError: if it would have to be a Llama of a kind that there is not.
    """
    family, _ = describe(model.config)
    if family.model_type != "qwen2" or words_of(model.tokenizer) == Rule((QWEN2_SPLIT,), compose=True):
        return model
    other = model.with_output_biases()
    try:
        describe(other.config)
    except ModelFileError as error:
        raise ModelFileError(
            "the tokenizer of Qwen2, which transformers uses for every model of this family",
            came="another, for a model with qkv_bias and a window",
            remedy="train without qkv_bias, or without a window",
        ) from error
    return other


def _unused(model: Outgoing) -> dict[str, Any]:
    """Rows that are no token must never be written."""
    rows = range(model.tokenizer.vocab_size, model.config.vocab_size)
    return {"suppress_tokens": list(rows)} if rows else {}


def _tokenizer_config(model: Outgoing) -> dict[str, Any]:
    end = model.tokenizer.end_of_text
    turn = model.token(model.end_of_turn_id) if model.end_of_turn_id is not None else None
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": model.token(model.tokenizer.start_id) or end,
        # A reader finds the end of a text by its name; only where it has an unusual one must this tell it.
        "eos_token": turn if turn is not None and end in KNOWN_ENDS else end,
        "pad_token": end,
        "add_bos_token": bool(model.tokenizer.beginning_ids),
        "add_eos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": model.config.context_length,
    }
    return config | ({"chat_template": model.chat_template} if model.chat_template is not None else {})


def _write_weights(folder: Path, tensors: Mapping[str, Tensor], dtype: torch.dtype, shard_bytes: int) -> None:
    shards = list(_shards(tensors, dtype, shard_bytes))
    weight_map: dict[str, str] = {}
    for number, names in enumerate(shards, 1):
        name = WEIGHTS if len(shards) == 1 else f"model-{number:05}-of-{len(shards):05}.safetensors"
        write_tensors(folder / name, {one: converted(one, tensors[one], dtype) for one in names})
        weight_map |= dict.fromkeys(names, name)
    if len(shards) > 1:
        total = sum(tensor.numel() for tensor in tensors.values()) * dtype.itemsize
        _write_json(folder / INDEX, {"metadata": {"total_size": total}, "weight_map": weight_map})


def _shards(tensors: Mapping[str, Tensor], dtype: torch.dtype, shard_bytes: int) -> Iterator[list[str]]:
    names, size = list[str](), 0
    for name, tensor in tensors.items():
        more = tensor.numel() * dtype.itemsize
        if names and size + more > shard_bytes:
            yield names
            names, size = [], 0
        names.append(name)
        size += more
    yield names


def _write_json(path: Path, fields: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(fields, indent=2, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
