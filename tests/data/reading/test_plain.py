"""Plain text: every character comes back, packed or not."""

import gzip

from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.data.reading.plain import PlainText


@settings(deadline=None, max_examples=50)
@given(st.text(st.characters(exclude_categories=["Cs"])), st.booleans())
def test_text_comes_back_but_for_cr_lf_and_a_mark_at_the_start(tmp_path_factory, text, packed):
    path = tmp_path_factory.mktemp("plain") / "x.txt"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    expected = text.removeprefix("\ufeff").replace("\r\n", "\n")
    begins_as_another_kind = text.encode()[:2] in (b"\x1f\x8b",)
    if not begins_as_another_kind and b"\0" not in text.encode() and not _mostly_controls(text):
        assert "".join(PlainText(path).blocks()) == expected


def _mostly_controls(text: str) -> bool:
    return sum(ord(c) < 32 for c in text) > 0.1 * len(text.encode())
