"""Whether it wrote or copied: the longest passage of its sample that the training text has, shown at both places.

In: a `Record`, and the text as it was learned from, if it is still there.  Out: HTML.  Used by: writing.py.
Read next: text_card.py.
"""

from collections.abc import Iterable

from pellucid.pages import Html, counted, escaped, foreign, joined, paragraph
from pellucid.report.opening import finished
from pellucid.report.record import Record
from pellucid.train.verdict import recites

AROUND = 160  # characters on either side: two lines, so that one sees what the passage is from
MOST_SEARCHED = 4_000_000  # characters of the training text: about half a second


def copied(record: Record, training_text: Iterable[str]) -> Html:
    """The verdict in a sentence, the passage in the sample, and where it comes from.

    Args:
        record: The run.
        training_text: In pieces that follow one another, to find the place; none if the tokens are gone.
    """
    event = finished(record)
    if event is None or not event.sample.strip():
        return Html("")
    passage, length = event.copied, len(event.copied)
    whole = f"the {counted(len(event.sample), 'character')} of the sample above"
    where = "the training text" if event.searched_share == 1 else f"the {event.searched_share:.0%} that was searched"
    if not length:
        return paragraph(f"Not one of {whole} stands in {where}.")
    answer = "Yes, in part: " if recites(event) else "No: "
    if recites(event) and length == len(event.sample):
        answer = "Yes, all of it: "
    longest = f"of {whole}, no more than {length:,} in a row stand in {where} word for word."
    usual = len(event.usually_shared)
    compared = "" if event.held_out is None else _compared(length, usual)
    place = event.sample.find(passage)
    parts = [
        paragraph(f"{answer}{longest} {compared}"),
    ]
    places = [_place("In the sample", event.sample, place, length)]
    if found := _found(passage, training_text):
        places.append(_place("In the training text", *found, length))
    parts.append(Html(f'<div class="pair">{"".join(places)}</div>'))
    if usual and event.held_out is not None:
        parts += [
            Html("<h3>For comparison</h3>"),
            paragraph(
                "The longest that one of ten unread passages of the same length shares with it,"
                f" {counted(usual, 'character')}:",
                kind="note",
            ),
            foreign(event.usually_shared, block=True),
        ]
    return joined(parts)


def _compared(length: int, usual: int) -> str:
    if length > usual:
        return f"Ten unread passages of that length, written by people, share up to {usual:,} with it."
    return f"That is no more than usual: ten unread passages of that length, written by people, share up to {usual:,}."


def _place(name: str, text: str, start: int, length: int) -> Html:
    """A passage within what stands around it."""
    stop = start + length
    first, last = max(0, start - AROUND), min(len(text), stop + AROUND)
    before, after = "… " if first else "", " …" if last < len(text) else ""
    mark = Html(f"<mark>{escaped(text[start:stop])}</mark>")
    passage = foreign(joined([before, text[first:start], mark, text[stop:last], after]), block=True)
    return Html(f"<div><h3>{name}</h3>{passage}</div>")


def _found(passage: str, pieces: Iterable[str]) -> tuple[str, int] | None:
    """A stretch of the training text around the passage, and where in it the passage begins."""
    kept, searched = "", 0
    overlap = len(passage) + AROUND
    waiting: tuple[str, int] | None = None  # found, and what follows it is still to come
    for piece in pieces:
        if waiting is not None:
            return waiting[0] + piece[:AROUND], waiting[1]
        stretch = kept + piece
        place = stretch.find(passage)
        if place >= 0:
            start, stop = max(0, place - AROUND - 1), place + overlap + 1
            waiting = stretch[start:stop], place - start
            if stop <= len(stretch):
                return waiting
        kept, searched = stretch[-overlap:], searched + len(piece)
        if searched > MOST_SEARCHED:
            break
    return waiting
