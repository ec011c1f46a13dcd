"""How many floating-point operations a run took, by a formula.

    for each token    6 · N + 12 · L · h · d_head · K

N counts the weights that multiply something: all but the embedding tables, whose rows are only looked up (a tied one is
also the head, and counts). A multiplication and an addition are two operations; forward takes them once, backward
twice: 6. Attention adds scores and weighted means, two products of K keys for each of h heads of width d_head in each
of L layers; K is the context length, or a layer's window, and the causal half is not taken off, as usual. Norms,
activations, softmax, the optimizer and what is computed a second time to save memory are not counted.

Source: Kaplan et al. 2020, section 2.1 (6N); Chowdhery et al. 2022 (PaLM), appendix B (attention).

In: a model's sizes.  Out: operations for each token.  Used by: record.  Read next: record.py.
"""

from collections.abc import Mapping
from itertools import cycle, islice
from typing import Any


def flops_per_token(model: Mapping[str, Any], parameters: int) -> float:
    """Operations that training takes for each token.

    Args:
        model: The fields of a `ModelConfig`, as run.json has them.
        parameters: All its weights.

    Example:
        >>> sizes = {"vocab_size": 10, "context_length": 8, "d_model": 4, "num_layers": 2, "num_heads": 2, "d_head": 2}
        >>> flops_per_token(sizes, parameters=240)
        1968.0
    """
    lookups = 0 if model.get("tie_embeddings") else model["vocab_size"] * model["d_model"]
    lookups += model["context_length"] * model["d_model"] if model.get("positions") == "learned" else 0
    whole, window = model["context_length"], model.get("window")
    pattern = model.get("layer_pattern") or ["local"]  # without a pattern, every layer has the window
    reaches = islice(cycle(pattern), model["num_layers"])
    keys = sum(min(whole, window) if window and reach == "local" else whole for reach in reaches)
    return 6.0 * (parameters - lookups) + 12.0 * model["num_heads"] * model["d_head"] * keys
