"""A model that is about to be handed on: its weights, its tokenizer, and what ends what it writes.

In: a model and its tokenizer.  Out: `Outgoing`.  Used by: huggingface_writing, gguf_writing, modelfile.  Read next:
huggingface_writing.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pellucid.errors import ModelFileError
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM
from pellucid.text import TextTokenizer

NUMBER_TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
"""By the word for --dtype."""


@dataclass(frozen=True, kw_only=True)
class Outgoing:
    """What an export is made of."""

    name: str
    """What the model is called where a file has a place for it."""
    config: ModelConfig
    tensors: Mapping[str, Tensor]
    """Weights by our addresses; a tied head is not among them."""
    tokenizer: TextTokenizer
    end_ids: tuple[int, ...]
    """All ids that end what the model writes, the end of a text first."""
    chat_template: str | None = None

    @staticmethod
    def of(
        model: TransformerLM,
        tokenizer: TextTokenizer,
        *,
        name: str,
        end_ids: frozenset[int] = frozenset(),
        chat_template: str | None = None,
    ) -> "Outgoing":
        """The same from a model.

        Raises:
            ModelFileError: if the head is tied by the config and differs from the embedding.
        """
        tensors = dict(model.state_dict())
        if model.config.tie_embeddings:
            head = tensors.pop("lm_head.weight")
            if not torch.equal(head, tensors["token_embedding.weight"]):
                raise ModelFileError(
                    "a head equal to the embedding it is tied to",
                    came="two different tensors",
                    remedy="save the model with tie_embeddings=False",
                )
        end = tokenizer.end_of_text_id
        others = sorted(one for one in end_ids if one != end and 0 <= one < tokenizer.vocab_size)
        return Outgoing(
            name=name,
            config=model.config,
            tensors=tensors,
            tokenizer=tokenizer,
            end_ids=(end, *others),
            chat_template=chat_template,
        )

    def token(self, token_id: int) -> str | None:
        """The name of a special token; None for one that has none."""
        if token_id == self.tokenizer.end_of_text_id:
            return self.tokenizer.end_of_text
        return next((name for name, number in self.tokenizer.special_tokens.items() if number == token_id), None)

    @property
    def end_of_turn_id(self) -> int | None:
        """The id that ends a turn of a chat: of those that end what is written, the one the template has most often."""
        counts = {one: (self.chat_template or "").count(self.token(one) or "\0") for one in self.end_ids}
        best = max(self.end_ids, key=lambda one: counts[one])
        return best if counts[best] else None

    @property
    def number_type(self) -> str:
        """The word for the type that holds all weights as they are."""
        kinds = {tensor.dtype for tensor in self.tensors.values()}
        word = next((word for word, kind in NUMBER_TYPES.items() if kinds == {kind}), None)
        return word or "float32"

    def with_output_biases(self) -> "Outgoing":
        """The same with biases of the attention's output projections, all 0: the same function in another family."""
        zeros = torch.zeros(self.config.d_model, dtype=self.tensors["token_embedding.weight"].dtype)
        more = {f"blocks.{layer}.attention.output.bias": zeros for layer in range(self.config.num_layers)}
        config = replace(self.config, attention_output_bias=True)
        return replace(self, tensors={**self.tensors, **more}, config=config)

    def without_unused_rows(self) -> "Outgoing":
        """The same with as many rows in the vocabulary as it has tokens: no runtime knows which it must not write."""
        rows = self.config.vocab_size - self.config.num_unused_ids
        cut = {"token_embedding.weight", "lm_head.weight", "lm_head.bias"}
        tensors = {name: one[:rows] if name in cut else one for name, one in self.tensors.items()}
        return replace(self, tensors=tensors, config=replace(self.config, vocab_size=rows, num_unused_ids=0))


def converted(name: str, tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """A weight in another number type.

    Raises:
        ModelFileError: if it has numbers that are too large for it.

    Example:
        >>> converted("w", torch.tensor([1.0]), torch.bfloat16)
        tensor([1.], dtype=torch.bfloat16)
    """
    made = tensor.detach().cpu().to(dtype)
    if dtype is torch.float16 and tensor.dtype is not dtype and not torch.isfinite(made).all():
        raise ModelFileError(
            "weights that float16 can hold (up to 65,504)",
            came=f"{tensor.abs().max():.3g} in {name}",
            remedy="export with --dtype bfloat16 or float32",
        )
    return made
