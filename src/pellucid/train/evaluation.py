"""How well the model predicts text it has not read, in bits per character.

The ten held-out passages are scored apart, each in windows of the context length that do not overlap, always eagerly
and in float32: the figure does not depend on how the run computes its steps. Every character counts in the denominator,
and one the tokenizer cannot write costs the same escape as it costs the n-gram tables. `inspection.surprises` gives the
same figure (a test compares them); here the model is called whole, as one that is cut over processes must be.

In: a model, held-out passages.  Out: a `Score`.  Used by: loop, the command line.  Read next: sample.py.
"""

import math

from pellucid.data import PreparedData, TokenFile, windows
from pellucid.inspection import answer_costs, reading
from pellucid.loss import summed_cross_entropy
from pellucid.nn import TransformerLM
from pellucid.yardsticks import Score

TOKENS_AT_ONCE = 4096  # rows x context; more does not run faster on a CPU and needs more memory


def evaluate(
    model: TransformerLM,
    data: PreparedData,
    end_of_text_id: int,
    *,
    start_id: int | None = None,
    context_length: int | None = None,
) -> Score | None:
    """Bits the model spends on each held-out passage; None if nothing is held out.

    Args:
        model: In any mode; it is left in the same one, and no random stream is touched.
        data: Whose held-out passages are scored.
        end_of_text_id: What each passage begins with.
        start_id: What stands before a text's first token, if it is another.
        context_length: Length of a window. Default: the model's.
    """
    if not data.held_out:
        return None
    if data.held_out_chats is not None:
        return _evaluate_answers(model, data, data.held_out_chats, context_length or model.config.context_length)
    context_length = context_length or model.config.context_length
    longest = max(len(piece.tokens) for piece in data.held_out) - 1
    context_length = min(context_length, max(longest, 1))
    batch_size = max(1, min(TOKENS_AT_ONCE // context_length, -(-longest // context_length)))
    device = next(model.parameters()).device
    bits = []
    with reading(model):
        for piece in data.held_out:
            nats = 0.0
            for inputs, targets in windows(
                piece.tokens,
                context_length=context_length,
                batch_size=batch_size,
                end_of_text_id=end_of_text_id,
                start_id=start_id,
            ):
                total, _ = summed_cross_entropy(model(inputs.to(device)), targets.to(device))
                nats += float(total)
            bits.append(nats / math.log(2) + piece.escaped * data.escape_bits)
    return Score("model", tuple(bits), tuple(piece.characters for piece in data.held_out))


def _evaluate_answers(model: TransformerLM, data: PreparedData, chats: TokenFile, context_length: int) -> Score:
    """Bits on the answers of each passage's conversations."""
    costs = answer_costs(model, chats, data.held_out, context_length)
    bits = tuple(nats / math.log(2) for nats, _ in costs)
    return Score("model", bits, tuple(piece.characters for piece in data.held_out))
