"""Text and tables as HTML: what is not known to be markup is escaped, whatever it looks like.

`Html` is text that is markup already. Every function here takes either: a plain `str` is escaped, an `Html` is not.

In: text, rows.  Out: `Html`.  Used by: page.py, report, evaluate, compare.  Read next: style.py.
"""

import html
import re
from collections.abc import Iterable, Sequence

# Characters that a page would obey or lose: controls, the overrides of direction, halves of surrogate pairs, and what
# is no character. Marks of direction and joiners are part of writing (Persian, Hebrew, Hindi) and stay.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
INDENTED = 0.4  # of the lines: code has more, a play or a poem fewer
_NUMBER = re.compile(r"[+\-\N{MINUS SIGN}±]?[\d,:]*\.?\d+(e[+-]?\d+)?\s?(%|×|s|min|h|kB|MB|GB)?")


class Html(str):
    """Text that is markup already.

    Example:
        >>> joined(["a < b", Html("<b>c</b>")])
        'a &lt; b<b>c</b>'
    """

    __slots__ = ()


def escaped(text: str) -> Html:
    """The text as HTML that shows exactly it; what is `Html` already stays as it is.

    Example:
        >>> escaped("<script>alert('no')</script>")
        '&lt;script&gt;alert(&#x27;no&#x27;)&lt;/script&gt;'
    """
    return text if isinstance(text, Html) else Html(html.escape(visible(text)))


def visible(text: str) -> str:
    """The text with every character written out that a page would obey or lose; newlines and tabs stay.

    Example:
        >>> visible("a\\x1b[31m\\u202e")
        'a␛[31m⟨U+202E⟩'
    """
    return _HIDDEN.sub(lambda match: _picture(ord(match[0])), text.replace("\r\n", "\n"))


def foreign(text: str, *, block: bool = False, kind: str = "") -> Html:
    """A piece of text that somebody else wrote: escaped, and read in the direction of its own script.

    Args:
        text: Anything.
        block: A passage of its own, with its line breaks, instead of a few words within a sentence.
        kind: A class for the style sheet: "sample", "prompt".

    Example:
        >>> foreign("سلام")
        '<bdi dir="auto">سلام</bdi>'
    """
    name = f' class="{kind}"' if kind else ""
    if not block:
        return Html(f'<bdi dir="auto"{name}>{escaped(text)}</bdi>')
    kinds = " ".join(filter(None, ("passage", kind, "code" if is_code(text) else "")))
    name = f' class="{kinds}"'
    return Html(f'<div dir="auto"{name}>{escaped(text)}</div>')


def is_code(text: str) -> bool:
    """Whether a passage is laid out by its indentation, so that its letters must be equally wide.

    Example:
        >>> is_code("def f():\\n    return 1\\n"), is_code("To be,\\nor not to be.")
        (True, False)
    """
    lines = [line for line in text.split("\n") if line.strip()]
    return len(lines) > 1 and sum(line.startswith(("    ", "\t")) for line in lines) >= INDENTED * len(lines)


def joined(parts: Iterable[str], between: str = "") -> Html:
    """Pieces one after the other."""
    return Html(escaped(between).join(escaped(part) for part in parts))


def paragraph(*parts: str, kind: str = "") -> Html:
    """A paragraph of pieces."""
    name = f' class="{kind}"' if kind else ""
    return Html(f"<p{name}>{joined(parts)}</p>")


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], *, kind: str = "") -> Html:
    """A table that scrolls by itself where it is wider than the page; columns of numbers stand flush right.

    Args:
        headers: Of the columns.
        rows: Cells: plain text or `Html`.
        kind: A class for the style sheet.

    Example:
        >>> rows = table(["name", "bits"], [["a < b", "2.10"]])
        >>> "<td>a &lt; b</td>" in rows, '<td class="number">2.10</td>' in rows
        (True, True)
    """
    rows = [[escaped(cell) for cell in row] for row in rows]
    columns = list(zip(*rows, strict=True)) or [()] * len(headers)
    marks = [' class="number"' if _is_of_numbers(column) else "" for column in columns]
    head = joined(Html(f"<th{mark}>{escaped(cell)}</th>") for mark, cell in zip(marks, headers, strict=True))
    body = joined(
        Html(f"<tr>{''.join(f'<td{mark}>{cell}</td>' for mark, cell in zip(marks, row, strict=True))}</tr>")
        for row in rows
    )
    name = f' class="{kind}"' if kind else ""
    return Html(f'<div class="wide"><table{name}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>')


def facts(pairs: Iterable[tuple[str, str]]) -> Html:
    """Names and what they are, one below the other.

    Example:
        >>> facts([("steps", "1,200")])
        '<dl><div><dt>steps</dt><dd>1,200</dd></div></dl>'
    """
    rows = (Html(f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}</dd></div>") for name, value in pairs)
    return Html(f"<dl>{joined(rows)}</dl>")


def figure(picture: Html, caption: str = "") -> Html:
    """A picture with what it shows."""
    words = f"<figcaption>{escaped(caption)}</figcaption>" if caption else ""
    return Html(f"<figure>{picture}{words}</figure>")


def _is_of_numbers(column: Sequence[str]) -> bool:
    return any(column) and all(not cell or _NUMBER.fullmatch(cell) for cell in column)


def _picture(code: int) -> str:
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"
