"""Texts at which tokenizers of different programs come apart: white space, marks, joiners, digits, contractions.

In: nothing.  Out: `AWKWARD`, `encodable`.  Used by: proof, gguf_tokens.  Read next: proof.py.
"""

from collections.abc import Iterable

from pellucid.errors import TokenizerError
from pellucid.text import TextTokenizer

AWKWARD: tuple[str, ...] = (
    "",
    " ",
    "The quick brown fox",
    " one space before, and one behind ",
    "  two   three    four",
    " " * 17 + "x" + " " * 64,
    "\ttab\t\ttabs \t mixed\t ",
    "line\nlines\n\n\nmore\n",
    "carriage\r\nreturn\rbare\r\n\r\n \r\n",
    "space before the end of a line \n  indented\n\tand so",
    "no\u00a0break\u00a0\u00a0space \u3000wide\u2003em\u2028line\u2029paragraph\u0085next",
    "zero\u0000byte\u0000 \u0000",
    "\u0001\u001c\u001d\u007f controls \u200b\u200c\u200d\ufeff joiners",
    "na\u00efve caf\u00e9 \u00c5ngstr\u00f6m",
    "nai\u0308ve cafe\u0301 A\u030angstro\u0308m",
    "\u0301\u0301 \u0302lone marks\u0303 a\u0301\u0302\u0303",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f44b\U0001f3fd \U0001f1e9\U0001f1ea\u2764\ufe0f",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u3053\u3093\u306b\u3061\u306f\u30ab\u30bf \ud55c\uad6d\uc5b4",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 "
    "\u0645\u064e\u0631\u0652\u062d\u064e\u0628\u064b\u0627 "
    "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd",
    "0 12 123 1234 12345 3.14159 1,000,000 2026-11-30 \u0967\u0968\u0969 \u00b2\u2167\u00bd",
    "don't we'll I'm you're they've he'd it's DON'T WE'LL I'M \u2019s 'tis 's's '\u017f ''s",
    "snake_case camelCase HTTPServer x+=1; if(a<=b&&c){return-1;} // #!? $%^ @~` \\n <|not special|>",
    "def f(x):\n    return [i ** 2 for i in range(x)]  # \u2192 \u2211\n\n\n    \n",
    "...!!! ?? -- \u2013\u2014 \u201equoted\u201c \u00abso\u00bb (paren) [brack] {brace}\n\n.\n!\r\n?",
    "\U00010348\U0001d4d0\U000e0041 astral \ufffd replaced \uffff",
    "<0x0A> <s> \u2581underline\u2581 \u0120\u010a <unk>",
)
"""Each with what breaks: spaces, line ends, controls, accents in both forms, scripts, numbers, signs, near-specials."""


def encodable(tokenizer: TextTokenizer, texts: Iterable[str] = AWKWARD) -> list[str]:
    """The texts that a tokenizer has ids for, without the characters it does not know.

    Example:
        >>> from pellucid.text import character_tokenizer
        >>> encodable(character_tokenizer(["abc "]), ["a!b", "?"])
        ['ab', '']
    """
    kept: list[str] = []
    for text in texts:
        text = text.translate({ord(one): None for one in tokenizer.unknown_characters(text)})
        try:
            tokenizer.encode(text)
        except TokenizerError:
            continue
        kept.append(text)
    return kept
