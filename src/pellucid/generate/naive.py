"""The naive generator: the whole of it in ten lines, with no cache. The fast one is tested to write the same.

In: a model, a prompt as ids.  Out: ids.  Used by: readers, and the tests of decode.  Read next: whole_characters.py.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from pellucid.generate.decode import visible_from
from pellucid.generate.reading import device_of, evaluating
from pellucid.nn import TransformerLM


@torch.no_grad()
def generate_naively(
    model: TransformerLM, prompt: Sequence[int], choose: Callable[[Tensor], int], max_tokens: int
) -> list[int]:
    """Go on from a prompt: read everything that is visible, choose one id, and begin again.

    Args:
        model: The model.
        prompt: Ids; from 1 to context_length.
        choose: From logits (vocab) to an id; `likeliest`, say. `whole_characters` makes one that breaks no character.
        max_tokens: How many ids to write.

    Example:
        >>> from pellucid.generate.sampling import likeliest
        >>> from pellucid.model_config import ModelConfig
        >>> model = TransformerLM(ModelConfig(vocab_size=10, d_model=64, num_heads=4, context_length=8))
        >>> len(generate_naively(model, [1, 2, 3], likeliest, max_tokens=20))
        20
    """
    token_ids = list(prompt)
    for _ in range(max_tokens):
        first = visible_from(model.config.context_length, len(token_ids))
        with evaluating(model):
            logits = model(torch.tensor([token_ids[first:]], device=device_of(model)))
        token_ids.append(choose(logits[0, -1]))
    return token_ids[len(prompt) :]
