"""XML as a stream: tags and text are told; whatever multiplies, reaches out or is broken is refused."""

import pytest

from pellucid.data.reading.xml_stream import read_xml
from pellucid.errors import DataError

LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))


class Noted:
    def __init__(self):
        self.told = []

    def start(self, tag, attributes):
        self.told.append((tag, attributes))

    def end(self, tag):
        self.told.append(tag)

    def text(self, text):
        self.told.append(repr(text))


def read(content: str | bytes, size: int = 1000) -> list:
    noted = Noted()
    data = content.encode() if isinstance(content, str) else content
    for _ in read_xml((data[start : start + size] for start in range(0, len(data), size)), noted, "x.docx"):
        pass
    return noted.told


def refusal(content: str | bytes) -> str:
    with pytest.raises(DataError) as caught:
        read(content)
    return str(caught.value)


def test_tags_and_text_are_told_with_their_namespaces():
    assert read('<a xmlns="urn:x" b="1">t &amp; u<c/></a>') == [
        ("urn:x a", {"b": "1"}),
        "'t & u'",
        ("urn:x c", {}),
        "urn:x c",
        "urn:x a",
    ]


def test_blocks_of_one_byte_give_the_same_tags():
    assert [t for t in read("<a><b>é</b></a>", size=1) if not isinstance(t, str)] == [("a", {}), ("b", {})]


def test_a_document_type_without_entities_is_read():
    assert read('<!DOCTYPE html PUBLIC "x" "http://example.org/x.dtd"><html/>') == [("html", {}), "html"]


@pytest.mark.parametrize(
    "declared",
    [f'<!ENTITY l0 "lol">{LAUGHS}', '<!ENTITY x SYSTEM "file:///etc/passwd">', '<!ENTITY % p "x">', '<!ENTITY a "b">'],
)
def test_declared_entities_are_refused_before_they_multiply(declared):
    assert "declares entities" in refusal(f"<!DOCTYPE a [{declared}]><a>&l11;</a>")


@pytest.mark.parametrize("broken", ["<a><b></a>", "<a>", "text", "", "<a>&nbsp;</a>", "<a>\0</a>", "<a b=1/>"])
def test_broken_documents_are_refused(broken):
    assert "XML is damaged" in refusal(broken)


def test_an_unknown_encoding_is_refused():
    assert "XML is damaged" in refusal(b'<?xml version="1.0" encoding="klingon"?><a/>')


def test_tags_without_end_within_tags_are_refused():
    assert "10,000 deep" in refusal("<a>" * 20_000)


def test_an_error_of_the_handler_is_passed_on():
    class Refusing(Noted):
        def start(self, tag, attributes):
            raise DataError("x", came="y", remedy="z")

    with pytest.raises(DataError, match="Expected x"):
        list(read_xml([b"<a/>"], Refusing(), "x"))
