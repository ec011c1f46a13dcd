"""A tokenizer whose tokens are the characters of a text.

In: texts.  Out: a `TextTokenizer`.  Used by: train, prepare, presets of the smallest models.  Read next: byte_pairs.py.
"""

from collections.abc import Iterable

import tokenizers as library
from tokenizers import decoders, models, pre_tokenizers

from pellucid.errors import TokenizerError
from pellucid.text.character_table import distinct_characters
from pellucid.text.definition import END_OF_TEXT, EVERY_CHARACTER
from pellucid.text.tokenizer import TextTokenizer

_UNKNOWN = "<|unknown|>"  # WordLevel wants a name; it is no token, so that an unknown character is an error, not an id


def character_tokenizer(texts: Iterable[str]) -> TextTokenizer:
    """Make a tokenizer of every character that occurs, in code point order after the end of text.

    Args:
        texts: The text, in pieces of any size; a gigabyte is read in seconds and not kept.

    Returns:
        A tokenizer with the end of text as id 0 and the characters from id 1.

    Raises:
        TokenizerError: if there is no character, or half of one.

    Example:
        >>> tokenizer = character_tokenizer(["hello\\n", "world"])
        >>> tokenizer.vocab_size, tokenizer.encode("low\\n").tolist()
        (9, [5, 6, 8, 1])
    """
    characters = distinct_characters(texts)
    if not characters:
        raise TokenizerError("text to take characters from", came="none", remedy="give a text that is not empty")
    surrogates = [character for character in characters if "\ud800" <= character <= "\udfff"]
    if surrogates:
        raise TokenizerError(
            "text made of whole characters",
            came=f"the lone surrogate U+{ord(surrogates[0]):04X}",
            remedy="remove it, or read the text again with its true encoding",
        )
    ids = {END_OF_TEXT: 0} | {character: number for number, character in enumerate(characters, start=1)}
    built = library.Tokenizer(models.WordLevel(ids, unk_token=_UNKNOWN))
    built.pre_tokenizer = pre_tokenizers.Split(library.Regex(EVERY_CHARACTER), "isolated")
    built.decoder = decoders.Fuse()
    built.add_special_tokens([END_OF_TEXT])
    return TextTokenizer(built.to_str(pretty=True))
