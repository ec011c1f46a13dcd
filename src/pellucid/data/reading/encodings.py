"""Bytes that are no UTF-8 → what they probably are, to be asked about: a guess is shown, never acted upon.

UTF-16 and UTF-32 are known by their marks, UTF-16 without one by what it decodes to; charset-normalizer judges the
rest, among the encodings that people's files are in. It is imported only when there is something to guess.

In: bytes.  Out: `Guess`, `guesses`, `marked_encoding`, `unmarked_utf_16`, `text_codec`.  Used by: decoding.py, html.py.
Read next: decoding.py.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pellucid.data.pieces import printable
from pellucid.errors import DataError

JUDGED_BYTES = 1 << 15  # more does not change the judgement, and takes longer
SHOWN_CHARACTERS = 60
ENCODING_MARKS = (  # the longer marks first: UTF-32's begins with UTF-16's
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
NAMES = {  # as charset-normalizer calls them, and as people do
    "gb18030": "GB18030",
    "big5": "Big5",
    "cp932": "Shift-JIS",
    "euc_jp": "EUC-JP",
    "cp949": "EUC-KR",
    "cp1251": "cp1251",
    "koi8_r": "KOI8-R",
    "cp866": "cp866",
    "cp1256": "cp1256",
    "cp1252": "cp1252",
    "cp1250": "cp1250",
    "cp1253": "cp1253",
    "cp1254": "cp1254",
    "cp1255": "cp1255",
}
WIDER = {"Shift-JIS": "cp932", "EUC-KR": "cp949"}  # what files that call themselves so really hold
LATIN = frozenset(("cp1252", "cp1250", "cp1254"))
COMMON_LEADS = {  # first bytes of punctuation and common characters: 95 % of real text, far less of what is misread
    "gb18030": ((0xA1, 0xA3), (0xB0, 0xD7)),
    "big5": ((0xA1, 0xA3), (0xA4, 0xC6)),
    "cp932": ((0x81, 0x83), (0x88, 0x97)),
    "euc_jp": ((0xA1, 0xA1), (0xA4, 0xA5), (0xB0, 0xCF)),
    "cp949": ((0xA1, 0xA3), (0xB0, 0xC8)),
}
CLOSE = 0.1  # a difference in likelihood that decides nothing in a short text
CLOSE_LATIN = 0.3  # the Latin ones differ in few letters, and it knows few languages
COMMON_SHARE = 0.8
MOST_GUESSES = 3
MOST_LINES = 500  # are looked through for one that tells guesses apart
ZERO_SHARE = 0.2  # of UTF-16 in Latin letters half is zeros; other scripts do not decode as UTF-8
LONE_SHARE = 0.7  # of the bytes beyond ASCII stand alone between ASCII in Latin scripts; in others they come in rows
LONE = re.compile(rb"(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])")
MARKUP = re.compile(rb"<[^<>\x80-\xff]*>")


@dataclass(frozen=True)
class Guess:
    """An encoding and how a line would read in it."""

    encoding: str
    line: str


def text_codec(encoding: str) -> Callable[[str], codecs.IncrementalDecoder]:
    """Find the decoder of a text encoding by name.

    Args:
        encoding: A name such as "utf-8" or "latin-1".

    Returns:
        What makes its incremental decoder.

    Raises:
        DataError: if there is no such encoding of text.
    """
    try:
        codec = codecs.lookup(WIDER.get(encoding, encoding))
    except (LookupError, ValueError) as error:
        raise DataError(
            "the name of a text encoding", came=f"“{printable(encoding)}”", remedy='try "utf-16", "latin-1" or "cp1252"'
        ) from error
    if not codec._is_text_encoding or codec.incrementaldecoder is None:
        raise DataError(
            "the name of a text encoding", came=f"“{encoding}”, which turns bytes into bytes", remedy='try "latin-1"'
        )
    return codec.incrementaldecoder


def marked_encoding(head: bytes) -> str | None:
    """The encoding that a mark at the start of a file names: UTF-16, UTF-32, or None."""
    return next((name for mark, name in ENCODING_MARKS if head.startswith(mark)), None)


def unmarked_utf_16(head: bytes) -> str | None:
    """The order of UTF-16 that bytes without a mark decode to as text, or None.

    Wrong bytes soon give half characters or code points that no letter has; of the two orders the one that has spaces
    and line ends is right.

    Example:
        >>> unmarked_utf_16("an English line\\n".encode("utf-16-le")), unmarked_utf_16(b"an English line")
        ('UTF-16LE', None)
    """
    best, found = 0, None
    zeros = head.count(0)
    if not zeros or (zeros <= ZERO_SHARE * len(head) and begins_as_utf_8(head)):
        return None
    for encoding in ("UTF-16LE", "UTF-16BE"):
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(head)
        except UnicodeDecodeError:
            continue
        spaces = text.count(" ") + text.count("\n")
        odd = sum(unicodedata.category(c) in ("Cc", "Cn", "Co", "Cs") and c not in "\t\n\r\f" for c in text)
        if spaces > best and odd <= 0.01 * len(text):
            best, found = spaces, encoding
    return found


def begins_as_utf_8(head: bytes) -> bool:
    """Whether bytes decode as UTF-8, but perhaps for a last character that is cut off."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def guesses(data: bytes, line: bytes) -> list[Guess]:
    """Guess what bytes that are no UTF-8 are.

    Args:
        data: A stretch of the file that holds bytes beyond ASCII.
        line: A line of it to be shown as each guess would read it, if they do not all read it alike; then another.

    Returns:
        The best guess, and beside it at most two that are about as likely and would read the line otherwise; or none.

    Example:
        >>> text = "床前明月光，疑是地上霜。".encode("gb18030")
        >>> guesses(text, text)
        [Guess(encoding='GB18030', line='床前明月光，疑是地上霜。')]
    """
    ranked = list(dict.fromkeys(_ranked(data)))[: 2 * MOST_GUESSES]
    most: dict[str, str] = {}
    for shown in (line, *_telling(data).split(b"\n")[:MOST_LINES]):
        readings: dict[str, str] = {}
        for encoding in ranked:
            readings.setdefault(shown_line(shown, encoding), encoding)
        if len(readings) > len(most):
            most = readings
        if len(ranked) == len(most):
            break
    return [Guess(encoding, read) for read, encoding in most.items()][:MOST_GUESSES]


def shown_line(line: bytes, encoding: str) -> str:
    """A line, the first that is not empty, as an encoding reads it: safe for a terminal and short."""
    text = text_codec(encoding)("replace").decode(line, True).removeprefix("\ufeff")
    text = " ".join(text.strip().partition("\n")[0].split())
    return printable(text[:SHOWN_CHARACTERS]) + "…" * (len(text) > SHOWN_CHARACTERS)


def _ranked(data: bytes) -> Iterator[str]:
    """The likely encodings, the best first; ones that are clearly worse are left out."""
    # Imported here because it takes 0.07 s, and hardly anybody's file needs it.
    from charset_normalizer import from_bytes

    if known := marked_encoding(data) or unmarked_utf_16(data):
        yield known
        return
    data = _telling(data)
    beyond = len(data) - len(data.translate(None, bytes(range(0x80, 0x100))))
    is_latin = len(LONE.findall(data)) > LONE_SHARE * beyond
    scored = sorted(
        (match.chaos - match.coherence / 2 + (1 - _common_share(data, match.encoding)) / 2, match.encoding)
        for match in from_bytes(data, cp_isolation=list(NAMES), enable_fallback=False)
    )
    best, first = scored[0] if scored else (0.0, "")
    if is_latin and (best > -CLOSE or NAMES[first] in LATIN):
        yield "cp1252"  # a few accents in a short text: too little for a judgement, and most often this
    close = CLOSE_LATIN if is_latin else CLOSE
    for score, encoding in scored:
        if score <= best + close and (NAMES[encoding] in LATIN or not is_latin or score <= best):
            yield NAMES[encoding]
    if not scored:  # it finds long East Asian pages with a few odd characters too much of a mess
        likely = sorted(
            (_common_share(data, encoding), encoding) for encoding in COMMON_LEADS if _decodes(data, encoding)
        )
        yield from (NAMES[encoding] for share, encoding in reversed(likely) if share > COMMON_SHARE)


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _telling(data: bytes) -> bytes:
    """The lines that have bytes beyond ASCII, without the markup of web pages, as many as are judged."""
    lines = []
    size = 0
    for line in data.split(b"\n"):
        if size < JUDGED_BYTES and not line.isascii():
            lines.append(MARKUP.sub(b"", line))
            size += len(line)
    return b"\n".join(lines)[: 4 * JUDGED_BYTES]


def _common_share(data: bytes, encoding: str) -> float:
    """The share of the characters of two bytes that are common ones in an East Asian encoding; 1 in others."""
    if encoding not in COMMON_LEADS:
        return 1.0
    pairs = common = 0
    leads = iter(data)
    for lead in leads:
        if lead >= 0x80:
            trail = next(leads, 0)
            pairs += 1
            common += any(low <= lead <= high for low, high in COMMON_LEADS[encoding])
            common -= encoding == "cp949" and trail < 0xA1  # a syllable that came later, for all of 11,172
    return common / pairs if pairs else 1.0
