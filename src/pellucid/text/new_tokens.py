"""New special tokens for a tokenizer that has learned already.

In: a tokenizer, names.  Out: a tokenizer with more ids, the old ones as they were.  Used by: train.
Read next: characters.py.
"""

from collections.abc import Sequence

import tokenizers as library

from pellucid.errors import TokenizerError
from pellucid.text.tokenizer import TextTokenizer


def with_new_tokens(tokenizer: TextTokenizer, names: Sequence[str]) -> TextTokenizer:
    """The same tokenizer with special tokens of these names, whose ids follow the old ones in this order.

    A special token that is there already is left as it is.

    Args:
        tokenizer: The tokenizer.
        names: How the new tokens are spelled, such as <|im_start|>.

    Raises:
        TokenizerError: for a name that is empty, or that of an ordinary token, which would change how texts are cut.

    Example:
        >>> from pellucid.text import character_tokenizer
        >>> tokenizer = character_tokenizer(["abc"])
        >>> longer = with_new_tokens(tokenizer, ["<|im_start|>", "<|im_end|>"])
        >>> tokenizer.vocab_size, longer.special_tokens["<|im_end|>"], longer.vocab_size
        (4, 5, 6)
    """
    new = [name for name in dict.fromkeys(names) if name not in tokenizer.special_tokens]
    if not new:
        return tokenizer
    extended = library.Tokenizer.from_str(tokenizer.definition)
    there = extended.get_vocab(with_added_tokens=True)
    for name in new:
        if not name.strip() or name in there:
            raise TokenizerError(
                "a name that no token has yet, such as <|im_start|>",
                came=f"“{name}”, an ordinary token" if name in there else "an empty one",
                remedy="choose another name, with characters that no text has",
            )
    extended.add_special_tokens([library.AddedToken(name, special=True, normalized=False) for name in new])
    made = TextTokenizer(extended.to_str(), end_of_text=tokenizer.end_of_text)
    wanted = {name: tokenizer.vocab_size + place for place, name in enumerate(new)}
    if {name: made.special_tokens.get(name) for name in new} != wanted or made.vocab_size != max(wanted.values()) + 1:
        raise TokenizerError(
            "a tokenizer whose ids have no gaps, to which tokens can be added",
            came=f"one that gives {', '.join(new)} other ids than the next",
            remedy="use the model without --add-token",
        )
    return made
