"""A GGUF file, read: the model and the tokenizer in it, as ours.

Weights become float32, one tensor after the other, so a model takes little more memory than its own.

In: a path.  Out: `TransformerLM` and `TextTokenizer`.  Used by: loading.  Read next: gguf_file.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from pellucid.checkpoint import empty_model, refuse_foreign_weights
from pellucid.convert.gguf_config import ROPE_FACTORS, read_gguf_config
from pellucid.convert.gguf_families import GgufFamily
from pellucid.convert.gguf_file import GgufFile
from pellucid.convert.gguf_vocabulary import end_ids, read_vocabulary
from pellucid.convert.names import one_by_one, to_theirs
from pellucid.errors import TokenizerError
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM
from pellucid.text import TextTokenizer


def read_gguf(path: Path) -> tuple[TransformerLM, TextTokenizer, frozenset[int], str | None]:
    """A file's model on the CPU, in evaluation mode and float32; its tokenizer, the ids that end a text, chat template.

    Args:
        path: The file.

    Raises:
        ModelFileError: if it is damaged, or holds something that cannot be had here, naming it.
        TokenizerError: if its vocabulary cannot be used.
    """
    file = GgufFile(path)
    config, family = read_gguf_config(file)
    named = _Named(file, family, config)
    tokenizer = read_vocabulary(file.metadata, f"'{path}'")
    if tokenizer.vocab_size > config.vocab_size:
        came = f"{tokenizer.vocab_size:,} tokens and {config.vocab_size:,} rows of the embedding"
        raise TokenizerError(f"a row for each token in '{path}'", came=came, remedy="use another file of the model")
    config = replace(config, num_unused_ids=config.vocab_size - tokenizer.vocab_size)
    template = file.metadata.get("tokenizer.chat_template")
    template = template if isinstance(template, str) and template else None
    return _filled(named, family, config, path).eval(), tokenizer, end_ids(file.metadata, tokenizer), template


class _Named(Mapping[str, Tensor]):
    """The file's tensors that are weights, each made float32 when it is asked for."""

    def __init__(self, file: GgufFile, family: GgufFamily, config: ModelConfig) -> None:
        copies = {ROPE_FACTORS, "output.weight"} if config.tie_embeddings else {ROPE_FACTORS}
        self._file, self._offset = file, family.stored_offset
        self.shapes = {name: tensor.shape for name, tensor in file.tensors.items() if name not in copies}

    def __getitem__(self, name: str) -> Tensor:
        tensor = torch.from_numpy(self._file.read(name))
        return tensor.sub_(self._offset) if self._offset and name.endswith("norm.weight") else tensor

    def __contains__(self, name: object) -> bool:
        return name in self.shapes

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)


@torch.no_grad()
def _filled(named: _Named, family: GgufFamily, config: ModelConfig, path: Path) -> TransformerLM:
    with torch.device("meta"):
        outline = TransformerLM(config).state_dict()
    if config.tie_embeddings:
        del outline["lm_head.weight"]
    expected = {name: tuple(one.shape) for name, one in to_theirs(outline, family.weights, config).items()}
    problems = [f"{name} is missing" for name in expected if name not in named]
    problems += [f"{name} is unknown" for name in named if name not in expected]
    problems += [
        f"{name} has shape {named.shapes[name]}, not {shape}"
        for name, shape in expected.items()
        if name in named and named.shapes[name] != shape
    ]
    refuse_foreign_weights(problems, f"the weights of the {family.architecture} model that '{path}' describes")
    model = empty_model(config)
    targets = model.state_dict(keep_vars=True)
    for name, tensor in one_by_one(named, family.weights, config):
        targets[name].copy_(tensor)
    return model
