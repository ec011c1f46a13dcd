"""The language model: token ids in, a score for every possible next token out.

    token_ids ──token_embedding──▶ x [+ position_embedding] ──blocks──▶ final_norm ──lm_head──▶ logits

In: token ids.  Out: logits, unnormalised.  Used by: train, generate, inspection, convert.
Read next: initialize.py; then ../loss.py.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from pellucid.errors import ShapeError
from pellucid.model_config import ModelConfig
from pellucid.nn.attention import packed_mask
from pellucid.nn.block import TransformerBlock, make_norm
from pellucid.nn.embedding import Embedding
from pellucid.nn.kv_cache import KVCache, next_places
from pellucid.nn.linear import Linear
from pellucid.nn.multi_head import make_rotary
from pellucid.nn.positions import LearnedPositions


class TransformerLM(nn.Module):
    """A decoder-only Transformer language model.

    Args:
        config: Sizes and choices. Constructing initialises; see also `initialize`.

    Source: Radford et al. 2019 (GPT-2) for the arrangement; Touvron et al. 2023 (Llama) for the default parts.

    Example:
        >>> model = TransformerLM(ModelConfig(vocab_size=10, d_model=64, num_heads=4))
        >>> model(torch.tensor([[1, 2, 3]])).shape
        torch.Size([1, 3, 10])
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.token_embedding = Embedding(config.vocab_size, config.d_model)
        learned = config.positions == "learned"
        self.position_embedding = LearnedPositions(config.context_length, config.d_model) if learned else None
        layers = {config.layer_is_local(i): i for i in range(config.num_layers)}
        rotaries = {is_local: make_rotary(config, i) for is_local, i in layers.items()}
        self.blocks = nn.ModuleList(
            TransformerBlock(config, i, rotaries[config.layer_is_local(i)]) for i in range(config.num_layers)
        )
        self.final_norm = make_norm(config)
        self.lm_head = Linear(config.d_model, config.vocab_size, config.head_bias)
        self._tie()

    def _tie(self) -> None:
        if self.config.tie_embeddings and isinstance(self.lm_head, Linear):
            self.lm_head.weight = self.token_embedding.weight

    def _apply(self, fn, recurse: bool = True) -> "TransformerLM":
        """Follow `.to()` and keep tied weights tied: leaving the meta device would make two of one."""
        super()._apply(fn, recurse)
        self._tie()
        return self

    def forward(
        self,
        token_ids: Int[Tensor, "batch position"],
        *,
        positions: Int[Tensor, "#batch position"] | None = None,
        document_ids: Int[Tensor, "batch position"] | None = None,
        lengths: Sequence[int] | None = None,
        cache: KVCache | None = None,
        last_only: bool = False,
    ) -> Float[Tensor, "batch query vocab"]:
        """Logits for the token after each position.

        Args:
            token_ids: One row per sequence, padded on the right.
            positions: Where each token stands. Default: 0, 1, 2, ..., or behind what the cache holds.
            document_ids: Documents packed in one row; a token sees only its own. Not together with a cache.
            lengths: How many tokens of each row are real; what follows is padding, never attended. Default: all.
            cache: Keys and values of earlier tokens. It is written to, not advanced.
            last_only: Give the logits of each row's last real token alone, position axis 1.

        Returns:
            Unnormalised logits; those of the last `config.num_unused_ids` ids are -inf.

        Raises:
            ShapeError: naming both numbers, if the sequence reaches past the model's or the cache's.
        """
        x = self.hidden_states(
            token_ids, positions=positions, document_ids=document_ids, lengths=lengths, cache=cache, last_only=last_only
        )
        return self.logits(x)

    def hidden_states(
        self,
        token_ids: Int[Tensor, "batch position"],
        *,
        positions: Int[Tensor, "#batch position"] | None = None,
        document_ids: Int[Tensor, "batch position"] | None = None,
        lengths: Sequence[int] | None = None,
        cache: KVCache | None = None,
        last_only: bool = False,
    ) -> Float[Tensor, "batch query d_model"]:
        """What the head reads: `forward` up to and including the final norm. Arguments: as `forward`'s."""
        starts = [0] if cache is None else cache.lengths
        num_keys = max(starts) + token_ids.shape[1]
        self._check(token_ids, num_keys, positions, lengths)
        if cache is not None:
            cache.check_room(*token_ids.shape)
        places = next_places(starts, token_ids.shape[1], token_ids.device)
        masks = dict.fromkeys(block.attention.window for block in self.blocks)
        if any(starts) or document_ids is not None or lengths is not None:  # else block and window say it all
            ends = None if lengths is None else places[:, 0] + torch.tensor(lengths, device=places.device)
            masks = {w: packed_mask(places, num_keys, w, ends=ends, document_ids=document_ids) for w in masks}

        x = self.embed(token_ids, places if positions is None else positions)
        if positions is None and cache is not None:
            positions = places
        caches = [None] * len(self.blocks) if cache is None else cache.layers
        for block, layer_cache in zip(self.blocks, caches, strict=True):
            x = block(x, positions=positions, mask=masks[block.attention.window], cache=layer_cache)
        x = self.final_norm(x)
        return _last(x, lengths) if last_only else x

    def embed(
        self, token_ids: Int[Tensor, "batch position"], positions: Int[Tensor, "#batch position"]
    ) -> Float[Tensor, "batch position d_model"]:
        """What the first block reads: a vector for each token, and for its position where positions are learned."""
        x = self.token_embedding(token_ids)
        if self.config.embedding_scale != 1.0:
            x = x * torch.tensor(self.config.embedding_scale, dtype=x.dtype)  # rounded as Gemma rounds it
        return x if self.position_embedding is None else x + self.position_embedding(positions)

    def logits(self, hidden: Float[Tensor, "batch query d_model"]) -> Float[Tensor, "batch query vocab"]:
        """The head: scores over the vocabulary for each vector."""
        return self.finish_logits(self.lm_head(hidden))

    def finish_logits(self, logits: Float[Tensor, "*batch vocab"]) -> Float[Tensor, "*batch vocab"]:
        """What is done to the head's scores: capped where config says so, and no chance for ids that nobody uses."""
        if self.config.logit_soft_cap is not None:
            logits = self.config.logit_soft_cap * torch.tanh(logits / self.config.logit_soft_cap)
        if self.config.num_unused_ids:
            used = logits[..., : -self.config.num_unused_ids]
            logits = functional.pad(used, (0, self.config.num_unused_ids), value=-torch.inf)
        return logits

    def use_fused_attention(self, fused: bool) -> "TransformerLM":
        """Choose torch's attention kernel (True, as constructed) or the written-out reference; the results agree."""
        for block in self.blocks:
            block.attention.fused = fused
        return self

    def num_parameters(self) -> int:
        """Numbers that training may change, a tied weight counted once."""
        return sum(parameter.numel() for parameter in self.parameters())

    def _check(self, token_ids: Tensor, num_keys: int, positions: Tensor | None, lengths: Sequence[int] | None) -> None:
        batch_size, length = token_ids.shape
        if lengths is not None and (len(lengths) != batch_size or not all(0 <= n <= length for n in lengths)):
            expected = f"{batch_size} lengths from 0 to {length}"
            raise ShapeError(expected, came=str(list(lengths)), remedy="give one length per row")
        end = num_keys
        if positions is not None:  # inside a compiled graph nobody can look; whoever compiles answers for them
            end = 0 if torch.compiler.is_compiling() or not positions.numel() else int(positions.max()) + 1
        if end > self.config.context_length and self.config.positions != "none":
            raise ShapeError(
                f"at most context_length={self.config.context_length} positions",
                came=f"{end}",
                remedy="shorten the sequence, or use a model with a longer context_length",
            )


def _last(x: Float[Tensor, "batch query d_model"], lengths: Sequence[int] | None) -> Float[Tensor, "batch 1 d_model"]:
    """The vector of each row's last real token."""
    if lengths is None:
        return x[:, -1:]
    rows = torch.arange(len(x), device=x.device)
    return x[rows, [max(length, 1) - 1 for length in lengths]][:, None]
