"""Where a text may be cut into words before byte pairs are merged, for a text in memory and for a stream of pieces.

Byte-level BPE never merges across words, and a rule for words is one regular expression, which the `tokenizers` library
runs as it stands: `QWEN35_SPLIT` for what is learned here, `GPT2_SPLIT` for the course. The algorithm written out by
hand runs GPT-2's rule here, on Python's own `re`, which lacks the classes of letters and numbers: they are spelled out
from `unicodedata` once, on first use.

In: texts.  Out: words.  Used by: tokenizer.py, byte_pairs.py, byte_pairs_by_hand.py.  Read next: character_table.py.
"""

import re
import sys
import unicodedata
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import lru_cache

from pellucid.errors import TokenizerError

GPT2_SPLIT = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""English contractions, letters, numbers and signs with the space before them, and white space, which leaves its last
space to the word that follows. Marks are signs, so a vowel sign or an accent of its own is cut from its letter. Source:
GPT-2 (Radford et al. 2019)."""

QWEN35_SPLIT = (
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
    r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+"
    r"|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+"
    r"|\s+(?!\S)"
    r"|\s+"
)
"""How tokenizers trained here cut words: contractions; letters and their marks, with the one sign, space or joiner that
stands before them; each digit alone; signs, with the line ends after them; line ends, with the white space before them.
White space leaves its last space to the word that follows.

It is the rule of Qwen3.5 as llama.cpp spells it and runs it, by the name `qwen35`; on text without combining marks it
is also that of Qwen2 and Qwen3. OpenAI's o200k rule gives as many characters a token and leaves marks with their
letters, too, but what llama.cpp runs by the name `gpt-4o` does not: an export would read Hindi, Thai, vowelled Arabic
and decomposed accents in other tokens than the model learned (docs/log.md). Qwen's own spelling, `(?i:'s|…)`, differs
in the long s after an apostrophe."""

_WHITE_SPACE = "\\t-\\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""Unicode's White_Space. Python's own `\\s` adds U+001C to U+001F, which GPT-2's rule takes for signs."""

_LAST_OF_PLANE_0 = 0xFFFF

_UNSETTLED_WORDS = 2
"""More text can change the last two words of a piece and no earlier one: `don` `'` `l` becomes `don` `'ll`."""


_CLOSING_SIGNS = (
    r"!-/:-@\[-^`{-~\xab\xbb\u060c\u061b\u061f\u06d4\u0964\u0965\u2010-\u2027"
    r"\u3001-\u3003\u3008-\u3020\uff01-\uff0f\uff1a-\uff20"
)
"""Signs that are neither letters nor marks: of ASCII, Arabic, Devanagari and CJK, dashes, quotation marks."""

_END_OF_WORD = re.compile(rf"[^\W_](?=[\s{_CLOSING_SIGNS}])|\S(?= )")


def _ranges(major_category: str, highest: int) -> str:
    """Spell out a Unicode category (L letters, N numbers) as the inside of a character class."""
    inside = [code for code in range(highest + 1) if unicodedata.category(chr(code))[0] == major_category]
    firsts = [code for code, before in zip(inside, [-1, *inside], strict=False) if code != before + 1]
    lasts = [code for code, after in zip(inside, [*inside[1:], -1], strict=True) if code != after - 1]
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in zip(firsts, lasts, strict=True))


@lru_cache(maxsize=2)
def _gpt2_pattern(highest: int) -> re.Pattern[str]:
    letters, numbers = _ranges("L", highest), _ranges("N", highest)
    pattern = GPT2_SPLIT.replace(r"[^\s\p{L}\p{N}]", f"[^{_WHITE_SPACE}{letters}{numbers}]")
    for short, spelled_out in {
        r"\p{L}": f"[{letters}]",
        r"\p{N}": f"[{numbers}]",
        r"\S": f"[^{_WHITE_SPACE}]",
        r"\s": f"[{_WHITE_SPACE}]",
    }.items():
        pattern = pattern.replace(short, spelled_out)
    return re.compile(pattern)


def _word_pattern(text: str) -> re.Pattern[str]:
    # Python's `re` is five times slower on classes that reach past plane 0, and few texts do.
    return _gpt2_pattern(_LAST_OF_PLANE_0 if ord(max(text, default=" ")) <= _LAST_OF_PLANE_0 else sys.maxunicode)


def special_finder(special_tokens: Iterable[str]) -> re.Pattern[str]:
    """Make a pattern that finds special tokens in a text, the longest first where several begin at one place.

    Raises:
        TokenizerError: if one of them is empty.

    Example:
        >>> special_finder(["<|a|>", "<|a|><|a|>"]).findall("<|a|><|a|><|a|>")
        ['<|a|><|a|>', '<|a|>']
    """
    longest_first = sorted(special_tokens, key=len, reverse=True)
    if longest_first and not longest_first[-1]:
        raise TokenizerError(
            "special tokens of at least one character", came="an empty one", remedy="leave it out of the list"
        )
    never = "(?!)"
    return re.compile("|".join(map(re.escape, longest_first)) or never)


def words(pieces: Iterable[str], special_tokens: Sequence[str] = ()) -> Iterator[str]:
    """Cut a text that comes in pieces into words, as if it had come whole; special tokens come out whole.

    A word is given as soon as no further text can change it, so at most a piece, two words and the beginning of a
    special token are held at a time.

    Args:
        pieces: The text in order, cut anywhere: the lines of an open file, or a list of one text.
        special_tokens: Texts that are cut out before words are; the longest wins.

    Returns:
        An iterator over words. Joined, they are the text again.

    Raises:
        TokenizerError: if a special token is empty.

    Example:
        >>> list(words(["We do", "n't  know", " 42<|end", "|>"], ["<|end|>"]))
        ['We', ' don', "'t", ' ', ' know', ' 42', '<|end|>']
    """
    finder, held, enough = special_finder(special_tokens), "", 0
    for piece in pieces:
        held += piece
        # A word that runs over many pieces is looked at again only when it has doubled, or time would be quadratic.
        if len(held) >= enough:
            rest = yield from _settled_words(held, special_tokens, finder)
            enough = 2 * len(rest) if len(rest) == len(held) else 0
            held = rest
    yield from _settled_words(held, special_tokens, finder, is_last=True)


def _settled_words(
    text: str, special_tokens: Sequence[str], finder: re.Pattern[str], *, is_last: bool = False
) -> Generator[str, None, str]:
    """Yield the words of `text` that stand whatever follows it; return the rest of the text."""
    beginnings = [] if is_last else _beginnings_of_specials(text, special_tokens)
    pattern, start = _word_pattern(text), 0
    for special in finder.finditer(text):
        if any(start <= beginning <= special.start() for beginning in beginnings):
            break  # a longer special token may yet begin here
        for word in pattern.finditer(text, start, special.start()):
            yield word.group()
        yield special.group()
        start = special.end()
    end = next((beginning for beginning in beginnings if beginning >= start), len(text))
    unsettled: deque[re.Match[str]] = deque()
    for word in pattern.finditer(text, start, end):
        unsettled.append(word)
        if is_last or len(unsettled) > _UNSETTLED_WORDS:
            yield unsettled.popleft().group()
    return "" if is_last else text[unsettled[0].start() if unsettled else end :]


def _beginnings_of_specials(text: str, special_tokens: Sequence[str]) -> list[int]:
    """Places near the end of `text` from which it might go on to spell a special token."""
    longest = max(map(len, special_tokens), default=0)
    places = range(max(0, len(text) - longest + 1), len(text))
    return [
        place
        for place in places
        if any(len(token) > len(text) - place and token.startswith(text[place:]) for token in special_tokens)
    ]


def cut_between_words(text: str, length: int) -> Iterator[str]:
    """Cut a long text into pieces that have the same words as the whole.

    Wherever a letter or number is followed by white space or a sign, and wherever a space follows something that is not
    white space, a word of `GPT2_SPLIT` and of `QWEN35_SPLIT` ends, and none looks further ahead; so each piece can be
    encoded alone, on another thread or in turn. A mark continues a word of `QWEN35_SPLIT`, so it is no such sign.

    Args:
        text: The text.
        length: About how many characters a piece shall have. It has more where the next such place is further.

    Example:
        >>> list(cut_between_words("to be or  not to be", 6))
        ['to be or', '  not to', ' be']
    """
    start = 0
    while start < len(text):
        found = _END_OF_WORD.search(text, start + length - 1) if start + length < len(text) else None
        end = found.end() if found else len(text)
        yield text[start:end]
        start = end
