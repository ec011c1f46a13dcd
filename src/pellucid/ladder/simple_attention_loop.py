"""Rung 1: attention without weights, with every number in a loop you can follow.

A word's vector says what the word means alone. Attention gives it a *context vector*: a mixture of all words' vectors,
with more of those that resemble it. Three steps, each a function here: score, weigh, mix.

In: vectors, one a position.  Out: context vectors, one a position.  Used by: learners.
Read next: simple_attention.py, the same in two matrix products.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def scores_of_query(
    inputs: Float[Tensor, "position d_in"], query: Float[Tensor, " d_in"]
) -> Float[Tensor, " position"]:
    """Step 1, score: omega_j = sum_f query_f * inputs_jf, how much the query resembles each position.

    Args:
        inputs: A vector for each position.
        query: The vector that looks at them; in self-attention, one of them.

    Returns:
        One score a position: large where both vectors point the same way, 0 at right angles, negative when opposed.

    Example:
        >>> from pellucid.ladder import worked_example
        >>> scores_of_query(worked_example(), query=worked_example()[1])
        tensor([0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865])
    """
    scores = inputs.new_zeros(len(inputs))
    for key in range(len(inputs)):
        for feature in range(len(query)):
            scores[key] += query[feature] * inputs[key, feature]
    return scores


def weights_by_sum(scores: Float[Tensor, " position"]) -> Float[Tensor, " position"]:
    """Step 2 as one would first write it, omega / omega.sum(). It adds up to 1, and it is not enough.

    On the worked example it looks right, because all six vectors point into the same corner. But a score may be
    negative, and so is its "weight" then; the others exceed 1 to make up for it; and scores that add up to 0 leave
    a division by 0. Adding the same number to every score, which changes no comparison, changes every weight.

    Example:
        >>> weights_by_sum(torch.tensor([2.0, -1.0]))
        tensor([ 2., -1.])
        >>> weights_by_sum(torch.tensor([1.0, -1.0]))
        tensor([inf, -inf])
    """
    return scores / scores.sum()


def weights_by_softmax(scores: Float[Tensor, " position"]) -> Float[Tensor, " position"]:
    """Step 2, weigh: alpha_j = exp(omega_j) / sum_k exp(omega_k), shares that add up to 1.

    An exponential is never negative and keeps the order, so every weight is a share and a larger score is a larger
    share. Only differences count: exp(omega + c) = exp(omega) * exp(c), and exp(c) cancels. That is why the largest
    score may be subtracted first, so that no exponential is greater than exp(0) = 1 and none overflows.

    Example:
        >>> weights_by_softmax(torch.tensor([2.0, -1.0]))
        tensor([0.9526, 0.0474])
        >>> weights_by_softmax(torch.tensor([1002.0, 999.0]))
        tensor([0.9526, 0.0474])
    """
    exponentials = torch.zeros_like(scores)
    for key in range(len(scores)):
        exponentials[key] = torch.exp(scores[key] - scores.max())
    total = scores.new_zeros(())
    for exponential in exponentials:
        total += exponential
    return exponentials / total


def context_of_weights(
    inputs: Float[Tensor, "position d_in"], weights: Float[Tensor, " position"]
) -> Float[Tensor, " d_in"]:
    """Step 3, mix: z_f = sum_j alpha_j * inputs_jf, the positions' vectors in the proportion of their weights.

    Example:
        >>> from pellucid.ladder import worked_example
        >>> journey = worked_example()[1]
        >>> weights = weights_by_softmax(scores_of_query(worked_example(), journey))
        >>> context_of_weights(worked_example(), weights)
        tensor([0.4419, 0.6515, 0.5683])
    """
    context = torch.zeros_like(inputs[0])
    for key in range(len(inputs)):
        for feature in range(len(context)):
            context[feature] += weights[key] * inputs[key, feature]
    return context


def simple_attention_loop(inputs: Float[Tensor, "position d_in"]) -> Float[Tensor, "position d_in"]:
    """Self-attention without weights: every position in turn is the query.

    Args:
        inputs: A vector for each position.

    Returns:
        The context vector of each position.

    Source: Raschka 2024, section 3.3.

    Next rung: the loops over positions and features become two matrix products.

    Example:
        >>> from pellucid.ladder import worked_example
        >>> simple_attention_loop(worked_example())[1]
        tensor([0.4419, 0.6515, 0.5683])
    """
    contexts = torch.zeros_like(inputs)
    for position in range(len(inputs)):
        weights = weights_by_softmax(scores_of_query(inputs, query=inputs[position]))
        contexts[position] = context_of_weights(inputs, weights)
    return contexts
