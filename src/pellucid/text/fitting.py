"""A tokenizer fitted to a model that has fewer ids than it.

In: a tokenizer, the size of a model's vocabulary.  Out: a tokenizer.  Used by: loading.  Read next: characters.py.
"""

import json

from pellucid.errors import TokenizerError
from pellucid.text.definition import added_tokens
from pellucid.text.tokenizer import TextTokenizer


def fitted(tokenizer: TextTokenizer, vocab_size: int) -> TextTokenizer:
    """The same tokenizer without special tokens past a model's ids: that of Gemma 3's text models has one for images.

    Args:
        tokenizer: The tokenizer.
        vocab_size: How many ids the model has.

    Raises:
        TokenizerError: if tokens that text is made of would have to go.

    Example:
        >>> from pellucid.text import character_tokenizer
        >>> tokenizer = character_tokenizer(["abc"])
        >>> fitted(tokenizer, 64) is tokenizer
        True
    """
    if tokenizer.vocab_size <= vocab_size:
        return tokenizer
    outside = {token for token, token_id in tokenizer.special_tokens.items() if token_id >= vocab_size}
    definition = json.loads(tokenizer.definition)
    definition["added_tokens"] = [one for one in added_tokens(definition) if one["content"] not in outside]
    vocabulary = definition["model"].get("vocab")
    if isinstance(vocabulary, dict):
        definition["model"]["vocab"] = {token: one for token, one in vocabulary.items() if token not in outside}
    if tokenizer.end_of_text not in outside:
        made = TextTokenizer(
            json.dumps(definition, ensure_ascii=False),
            end_of_text=tokenizer.end_of_text,
            configured_end=tokenizer.configured_end,
        )
        made.configured_beginning = tokenizer.configured_beginning
        if made.vocab_size <= vocab_size:
            return made
    raise TokenizerError(
        f"a tokenizer of at most {vocab_size} ids, as many as the model has",
        came=f"one with {tokenizer.vocab_size}",
        remedy="use the tokenizer.json that was saved with the model",
    )
