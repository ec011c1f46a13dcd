"""What the answers of held-out conversations cost a model: each read from its beginning, after what was said before.

In: a model, conversations.  Out: `answer_costs`, `score_answers`.  Used by: train, the command line.
Read next: passages.py.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from pellucid.data import ConversationRows, HeldOutPiece, TokenFile
from pellucid.inspection.reading import reading
from pellucid.inspection.scored_text import TextScore
from pellucid.loss import summed_cross_entropy
from pellucid.nn import TransformerLM
from pellucid.text import TextTokenizer

TOKENS_AT_ONCE = 4096  # rows x context; more does not run faster on a CPU and needs more memory


def answer_costs(
    model: TransformerLM, chats: TokenFile, pieces: Sequence[HeldOutPiece], context_length: int
) -> Iterator[tuple[float, np.ndarray]]:
    """What the answers of each passage's conversations cost.

    Args:
        model: In any mode; it is left in the same one.
        chats: The file of the conversations.
        pieces: Which of them belong together.
        context_length: Tokens of a row; no conversation is longer.

    Yields:
        For each passage, nats, and the tokens that they are of: answers, and what ends them.
    """
    at_once = max(1, TOKENS_AT_ONCE // context_length)
    device = next(model.parameters()).device
    with reading(model):
        for piece in pieces:
            rows, nats, scored = ConversationRows(chats, context_length, piece.conversations), 0.0, []
            for first in range(0, len(rows), at_once):
                batch = rows.rows(list(range(first, min(first + at_once, len(rows)))))
                inputs, targets, document_ids, positions = (part.to(device) for part in batch)
                logits = model(inputs, document_ids=document_ids, positions=positions)
                nats += float(summed_cross_entropy(logits, targets)[0])
                scored.append(targets[targets >= 0].cpu().numpy())
            yield nats, np.concatenate(scored)


def score_answers(
    model: TransformerLM,
    tokenizer: TextTokenizer,
    chats: TokenFile,
    pieces: Sequence[HeldOutPiece],
    *,
    context_length: int,
) -> list[TextScore]:
    """The same as scores: the figure of training.

    Args:
        model: The model.
        tokenizer: Its own.
        chats: As for `answer_costs`; likewise the next two.
        pieces: Which conversations belong together.
        context_length: Tokens of a row.
    """
    costs = answer_costs(model, chats, pieces, context_length)
    return [
        TextScore(
            name=f"held-out answers {number}",
            characters=piece.characters,
            utf8_bytes=sum(len(tokenizer.token_bytes(one)) for one in ids.tolist()),
            tokens=len(ids),
            nats=nats,
        )
        for number, (piece, (nats, ids)) in enumerate(zip(pieces, costs, strict=True), 1)
    ]
