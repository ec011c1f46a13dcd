"""Web pages: their text and nothing of their markup, from clean, broken and hostile ones."""

import html
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.data.reading import html as module
from pellucid.data.reading.html import WebPage, page_text
from pellucid.data.reading.reader import ReadingOptions, told
from pellucid.errors import DataError


def text_of(page: str) -> str:
    return "".join(page_text([page], "x.html", Counter()))


@pytest.fixture
def file(tmp_path):
    def write(content: bytes, **options) -> WebPage:
        (tmp_path / "x.html").write_bytes(content)
        return WebPage(tmp_path / "x.html", ReadingOptions(**options))

    return write


def read(reader: WebPage) -> tuple[str, list[str]]:
    text = "".join("".join(blocks) for blocks in reader.documents())
    return text, told(reader.changes)


class TestWhatIsText:
    def test_paragraphs_are_lines_and_markup_goes(self):
        page = """<!DOCTYPE html><html><head><title>T</title><style>p { color: red }</style>
        <script>if (1 < 2) document.write("<p>no</p>")</script></head><body><!-- no -->
        <h1>A  title</h1><p>Some <b>bold</b>
        and <i>slanted</i>&nbsp;text.</p><p>More &amp; more: &#x4e00; &lt;tag&gt;</p></body></html>"""
        assert text_of(page) == "A title\nSome bold and slanted\xa0text.\nMore & more: 一 <tag>\n"

    def test_without_closing_tags_it_is_the_same(self):
        assert (
            text_of("<html><title>T</title><p>one<p>two <b>bold<ul><li>a<li>b</ul>end") == "one\ntwo bold\na\nb\nend\n"
        )

    def test_line_breaks_lists_and_tables_are_lines(self):
        page = "a<br>b<br/>c<table><tr><td>1<td>2<tr><th>x</th> <th>y</th></table>"
        assert text_of(page) == "a\nb\nc\n1\t2\nx\ty\n"

    def test_preformatted_text_keeps_its_spaces_and_lines(self):
        assert text_of("<pre>\n  def f():\n\n    pass\n</pre>after  it") == "  def f():\n\n    pass\nafter it\n"

    def test_readings_beside_characters_are_left_out(self):
        page = "<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rt>じ</ruby>を読む<p><ruby>一<rt>いち<p>二"
        assert text_of(page) == "漢字を読む\n一\n二\n"

    def test_a_self_closed_script_holds_nothing(self):
        assert text_of("<html><head><script src='x'/><title/></head><body>text</body>") == "text\n"

    def test_a_marked_section_of_xhtml_is_text_and_other_ones_are_comments(self):
        assert text_of("<p>a<![CDATA[ <b> & ]]>c<![if IE]>d<![endif]>") == "a <b> & cd\n"

    def test_entities_that_do_not_end_or_exist_stay_text(self):
        assert text_of("<p>AT&T &copy 2000 &nonsense;") == "AT&T © 2000 &nonsense;\n"

    def test_blocks_of_any_size_give_the_same(self):
        page = "<p>one &amp; two</p><!-- c --><script>x<y</script><p>three   four</p>" * 3
        assert "".join(page_text(page, "x", Counter())) == text_of(page)

    @settings(deadline=None, max_examples=60)
    @given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"])), max_size=6))
    def test_paragraphs_written_come_back_but_for_runs_of_spaces(self, paragraphs):
        page = "".join(f"<p>{html.escape(paragraph)}</p>\n" for paragraph in paragraphs)
        expected = [" ".join(p.split(" ")) for p in paragraphs]
        lines = [" ".join(part for part in p.split(" ") if part) for p in expected]
        assert text_of(page) == "".join(f"{line}\n" for line in lines if line.strip())


class TestEncodings:
    def test_a_declared_encoding_is_believed_and_told(self, file):
        page = '<meta charset="windows-1251"><p>Привет, мир'.encode("cp1251")
        assert read(file(page)) == ("Привет, мир\n", ["Read 1 web page as windows-1251, as declared."])

    def test_the_old_way_to_declare_and_that_of_xml_are_known(self, file):
        old = '<META http-equiv=Content-Type content="text/html; charset=Shift_JIS"><p>吾輩は猫である'
        assert read(file(old.encode("cp932")))[0] == "吾輩は猫である\n"
        xml = '<?xml version="1.0" encoding="GB2312"?><p>床前明月光'
        assert read(file(xml.encode("gb18030")))[0] == "床前明月光\n"

    def test_utf_8_that_declares_something_else_is_utf_8(self, file):
        assert read(file('<meta charset="iso-8859-1"><p>Füchse 🦊'.encode())) == ("Füchse 🦊\n", [])

    def test_a_wrong_declaration_of_utf_8_is_asked_about(self, file):
        with pytest.raises(DataError, match="--encoding cp1251"):
            read(file('<meta charset="utf-8"><p>Все счастливые семьи похожи друг на друга'.encode("cp1251")))

    def test_an_encoding_that_does_not_exist_is_asked_about(self, file):
        with pytest.raises(DataError, match="--encoding cp1252"):
            read(file('<meta charset="klingon"><p>déjà vu, as ever'.encode("cp1252")))

    def test_what_the_user_says_goes_first(self, file):
        page = '<meta charset="koi8-r"><p>Привет'.encode("cp1251")
        assert read(file(page, encoding="cp1251"))[0] == "Привет\n"

    def test_a_mark_names_the_encoding(self, file):
        text, notes = read(file("<p>Füchse".encode("utf-16")))
        assert (text, notes[0]) == ("Füchse\n", "Read 1 web page as UTF-16, as marked.")


class TestHostilePages:
    def test_markup_that_never_ends_is_left_out_and_told(self):
        for page in ("<p>text<!-- " + "no " * 9000, "<p>text<script>" + "x=1;" * 9000, "<p>text<a href='" + "y" * 9000):
            changes: Counter[str] = Counter()
            assert "".join(page_text([page], "x", changes)) == "text\n"
            assert "markup that has no end" in told(changes)[0]

    def test_a_title_that_never_ends_is_told_and_ends_with_the_head(self):
        changes: Counter[str] = Counter()
        assert "".join(page_text(["<title>no <p>all of it"], "x", changes)) == ""
        assert told(changes)
        assert text_of("<title>no <body><p>text") == "text\n"

    def test_a_tag_of_many_megabytes_is_refused(self, monkeypatch):
        monkeypatch.setattr(module, "LARGEST_TAG", 5000)
        with pytest.raises(DataError, match="markup that ends"):
            list(page_text(["<p title='" + "x" * 4000, "y" * 4000], "x", Counter()))

    @pytest.mark.parametrize("hostile", ["<!--", "<a ", "<", "<![", "&", "</", "<?", "<p x='", "<!a"])
    def test_long_markup_without_end_is_never_judged_again_and_again(self, hostile, monkeypatch):
        judged = []
        monkeypatch.setattr(module._Page, "close", lambda page: judged.append(len(page.rawdata)))
        "".join(page_text([hostile * 20_000] * 2, "x", Counter()))
        assert sum(judged) <= module.SMALL_REST  # what is longer takes Python's parser minutes

    def test_ten_thousand_open_tags_are_read(self):
        assert text_of("<div><b>" * 10_000 + "deep") == "deep\n"

    def test_a_page_of_one_long_line_is_handed_on_in_parts(self, monkeypatch):
        monkeypatch.setattr(module, "LONG_LINE", 100)
        words = "some words  and more " * 40
        parts = list(page_text([words] * 3, "x", Counter()))
        assert len([part for part in parts if part]) > 2
        assert "".join(parts) == " ".join((words * 3).split()) + "\n"

    def test_an_empty_page_has_no_text(self, file):
        assert read(file(b"")) == ("", [])
        assert read(file(b"<html><body></body></html>")) == ("", [])
