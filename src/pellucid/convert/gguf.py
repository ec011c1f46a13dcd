"""A GGUF file, read: the model and the tokenizer in it, as ours.

Weights become float32, some rows after the other, so a model takes no more memory than its own.

In: a path.  Out: `ForeignModel`.  Used by: loading.  Read next: gguf_file.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from pellucid.convert.foreign_model import ForeignModel
from pellucid.convert.gguf_config import ROPE_FACTORS, read_gguf_config
from pellucid.convert.gguf_families import GgufFamily
from pellucid.convert.gguf_file import GgufFile
from pellucid.convert.gguf_vocabulary import end_ids, read_vocabulary
from pellucid.errors import TokenizerError
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM
from pellucid.text import TextTokenizer

KEPT = {"F16": torch.float16, "BF16": torch.bfloat16}
"""Types in which numbers may be taken as they are; all others become float32."""


def open_gguf(path: Path) -> ForeignModel:
    """The model in a file, with its tokenizer, before its weights are read; they are used in float32.

    Raises:
        ModelFileError: if it is damaged, or holds something that cannot be had here, naming it.
        TokenizerError: if its vocabulary cannot be used.
    """
    file = GgufFile(path)
    config, family = read_gguf_config(file)
    tokenizer = read_vocabulary(file.metadata, f"'{path}'")
    if tokenizer.vocab_size > config.vocab_size:
        came = f"{tokenizer.vocab_size:,} tokens and {config.vocab_size:,} rows of the embedding"
        raise TokenizerError(f"a row for each token in '{path}'", came=came, remedy="use another file of the model")
    template = file.metadata.get("tokenizer.chat_template")
    return ForeignModel(
        kind="a GGUF file",
        config=config,
        family=family.weights,
        weights=GgufWeights(file, family, config),
        tokenizer=tokenizer,
        end_ids=end_ids(file.metadata, tokenizer),
        chat_template=template if isinstance(template, str) and template else None,
        files=(path,),
        told_by=f"'{path}'",
        number_type=torch.float32,
    )


def read_gguf(path: Path) -> tuple[TransformerLM, TextTokenizer, frozenset[int], str | None]:
    """A file's model on the CPU, in evaluation mode and float32; its tokenizer, the ids that end a text, chat template.

    Raises:
        ModelFileError: if it is damaged, or holds something that cannot be had here, naming it.
        TokenizerError: if its vocabulary cannot be used.
    """
    opened = open_gguf(path)
    return opened.model(), opened.required_tokenizer(), opened.end_ids, opened.chat_template


class GgufWeights:
    """The file's tensors that are weights."""

    def __init__(self, file: GgufFile, family: GgufFamily, config: ModelConfig) -> None:
        copies = {ROPE_FACTORS, "output.weight"} if config.tie_embeddings else {ROPE_FACTORS}
        self._file, self._offset = file, family.stored_offset
        self._names = [name for name in file.tensors if name not in copies]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._file.tensors and name in self._names

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's shape."""
        return self._file.tensors[name].shape

    def number_type(self, name: str) -> torch.dtype:
        """The number type in which nothing of it is lost."""
        is_shifted = self._offset and name.endswith("norm.weight")
        return torch.float32 if is_shifted else KEPT.get(self._file.tensors[name].kind.name, torch.float32)

    def read(self, name: str) -> Tensor:
        """A tensor in that type."""
        tensor = torch.empty(self.shape(name), dtype=self.number_type(name))
        self.read_into(name, tensor)
        return tensor

    @torch.no_grad()
    def read_into(self, name: str, target: Tensor) -> None:
        """Fill a tensor of its shape."""
        if target.dtype == torch.float32 and target.is_contiguous():
            self._file.read_into(name, target.detach().numpy())
        else:
            target.copy_(torch.from_numpy(self._file.read(name)))
        if self._offset and name.endswith("norm.weight"):
            target.sub_(self._offset)
