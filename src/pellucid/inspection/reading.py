"""The model as everybody who only looks at it uses it: no dropout, no gradient; afterwards as before.

In: a model.  Out: `reading`, which lends it.  Used by: surprise.py, attention_maps.py, train.  Read next: surprise.py.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import cast

import torch

from pellucid.nn import TransformerBlock, TransformerLM


@contextmanager
def reading(model: TransformerLM, *, fused: bool = True) -> Generator[TransformerLM]:
    """Lend a model for reading: no dropout, so that no random number is drawn, and no gradient.

    Args:
        model: In any mode; it is left in the same one, however the block ends.
        fused: Whether by torch's attention kernel, or by the written-out reference.

    Yields:
        The model.
    """
    attentions = [cast(TransformerBlock, block).attention for block in model.blocks]
    was_training, was_fused = model.training, [attention.fused for attention in attentions]
    model.eval()
    model.use_fused_attention(fused)
    try:
        with torch.no_grad():
            yield model
    finally:
        model.train(was_training)
        for attention, before in zip(attentions, was_fused, strict=True):
            attention.fused = before
