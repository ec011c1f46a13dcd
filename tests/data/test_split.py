"""The held-out split: where it cuts, that nothing is lost or on both sides, and that it is a stream."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.data import (
    Document,
    Sources,
    open_sources,
    passages,
    pieces,
    sample_split,
    sources_of_texts,
    split_of,
    training_texts,
)
from pellucid.data.sources import TextInMemory
from pellucid.data.split import SMALLEST_TEXT, cut_places
from pellucid.errors import DataError


def sources(*texts: str):
    return sources_of_texts(Document(str(number), text) for number, text in enumerate(texts))


def sides(text_sources) -> dict[str, list[str]]:
    found = {"training": [""] * 10, "held_out": [""] * 10}
    for passage in passages(text_sources):
        found[passage.side][passage.tenth] += passage.text
    return found


def test_the_last_twentieth_of_each_tenth_is_held_out():
    text = "".join(chr(0x4E00 + place) for place in range(10_000))
    found = sides(sources(text))
    assert found["training"] == [text[k * 1000 : k * 1000 + 950] for k in range(10)]
    assert found["held_out"] == [text[k * 1000 + 950 : (k + 1) * 1000] for k in range(10)]


@settings(deadline=None)
@given(st.integers(SMALLEST_TEXT, 3_000_000))
def test_the_cut_places_are_the_stated_arithmetic(characters):
    places = cut_places(characters)
    assert places[-1][1] == characters
    starts = [0] + [end for _, end in places[:-1]]
    for start, (cut, end) in zip(starts, places, strict=True):
        assert end - cut == (end - start) * 5 // 100 >= 1


@settings(deadline=None)
@given(
    lengths=st.lists(st.integers(1, 400), min_size=1, max_size=8),
    alphabet=st.sampled_from(["ab \n", "a\u0301\u200d", "é𝄞\u0301\n"]),
    data=st.data(),
)
def test_every_character_is_on_one_side_in_its_order(lengths, alphabet, data):
    texts = [data.draw(st.text(alphabet, min_size=length, max_size=length)) for length in lengths] + ["z" * 200]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PIECE_CHARACTERS", 64)
        text_sources = sources(*texts)
        found = list(passages(text_sources))
    kept = dict.fromkeys(texts)  # a copy of a document is left out
    assert "".join(passage.text for passage in found) == "".join(kept)
    assert [(p.tenth, p.side) for p in found] == sorted(
        ((p.tenth, p.side) for p in found), key=lambda at: (at[0], at[1] == "held_out")
    )
    assert {(p.tenth, p.side) for p in found} == {(k, side) for k in range(10) for side in ("training", "held_out")}


def test_each_file_side_and_seam_opens_a_document_and_nothing_else_does(monkeypatch):
    monkeypatch.setattr(pieces, "PIECE_CHARACTERS", 30)
    found = list(passages(sources("a" * 500, "b" * 500)))
    opened = [(p.text[0], p.tenth, p.side) for p in found if p.opens]
    expected = [("a" if k < 5 else "b", k, side) for k in range(10) for side in ("training", "held_out")]
    assert opened == expected
    three = [p.tenth for p in passages(sources("a" * 420, "b" * 580)) if p.opens and p.side == "training"]
    assert three == [0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 9]  # the file's end inside tenth 4 opens one more


def test_a_cut_moves_to_the_end_of_the_grapheme():
    text = "x" * 95 + "\u0301\u0302" + "y" * 903
    found = sides(sources(text))
    assert found["training"][0] == "x" * 95 + "\u0301\u0302"
    assert found["held_out"][0] == "yyy"


@pytest.mark.parametrize("joined", ["e\u0301", "👨\u200d👩", "👍🏽", "🇮🇷", "각", "क्षि", "❤\ufe0f"])
def test_no_cut_falls_inside_a_grapheme(joined):
    for shift in range(len(joined) + 1):
        for passage in passages(sources("." * shift + joined * 700)):
            assert passage.text.lstrip(".").removesuffix(".").replace(joined, "") in ("", ".")


@pytest.mark.parametrize("joined", ["e\u0301", "👨\u200d👩", "👍🏽", "ی\u200cک", "❤\ufe0f"])
def test_no_passage_begins_with_what_belongs_to_the_character_before(joined):
    for shift in range(len(joined) + 1):
        for passage in passages(sources("." * shift + joined * 700)):
            assert not unicodedata.category(passage.text[0]).startswith("M")
            assert passage.text[0] not in "\u200c\u200d🏽"


def test_a_text_of_marks_alone_still_holds_out_something_in_each_tenth():
    assert all(sides(sources("\u0301" * 200))["held_out"])


def test_the_smallest_text_splits_and_a_shorter_one_names_the_split_and_both_numbers():
    assert [len(text) for text in sides(sources("a" * SMALLEST_TEXT))["held_out"]] == [1] * 10
    with pytest.raises(DataError, match=r"200 characters.*held-out split.*but got 199"):
        list(passages(sources("a" * 199)))


def test_training_texts_are_the_training_side_alone():
    text_sources = sources("".join(chr(0x4E00 + place) for place in range(10_000)))
    assert "".join(training_texts(text_sources)) == "".join(sides(text_sources)["training"])


def documents(*lengths: int, percent: int = 5):
    """Documents of these lengths, each of a character of its own, as files or rows are."""
    texts = (TextInMemory(Document(str(n), chr(0x4E00 + n) * length)) for n, length in enumerate(lengths))
    return Sources(texts, hold_out_documents=True, held_out_percent=percent)


class TestWholeDocuments:
    def test_every_twentieth_is_held_out_whole_from_the_one_that_makes_it_five_percent(self):
        text_sources = documents(*(100 + number % 7 for number in range(200)))
        split = split_of(text_sources)
        assert (split.kind, split.every, len(split.held_out_documents)) == ("documents", 20, 10)
        assert abs(split.held_out_characters / text_sources.characters - 0.05) < 0.002
        held_out = {letter for text in sides(text_sources)["held_out"] for letter in text}
        training = {letter for text in sides(text_sources)["training"] for letter in text}
        assert held_out == {chr(0x4E00 + number) for number in split.held_out_documents}
        assert not held_out & training
        assert len(held_out) + len(training) == 200

    def test_what_is_held_out_makes_ten_passages_of_equal_length(self):
        for count in (20, 57, 300):
            lengths = [len(text) for text in sides(documents(*[100] * count))["held_out"]]
            assert len(lengths) == 10
            assert max(lengths) - min(lengths) <= 1

    def test_nothing_is_lost_and_the_order_is_kept(self):
        text_sources = documents(*range(1, 100))
        found = list(passages(text_sources))
        assert "".join(p.text for p in found) == "".join(piece.text for piece in text_sources.pieces())
        tenths = [p.tenth for p in found if p.side == "training"]
        assert tenths == sorted(tenths)
        assert set(tenths) == set(range(10))

    def test_each_document_opens_one(self):
        found = list(passages(documents(*[100] * 40)))
        assert all(p.opens for p in found)
        assert len([p for p in found if p.side == "training"]) == 38

    def test_few_documents_or_a_large_one_are_split_by_passages(self):
        assert split_of(documents(*[100] * 19)).kind == "passages"
        assert split_of(documents(*[100] * 40, 5000)).kind == "passages"

    def test_documents_too_tiny_for_ten_passages_are_refused(self):
        with pytest.raises(DataError, match="held-out split"):
            split_of(documents(*[1] * 150))

    def test_texts_in_memory_are_split_by_passages(self):
        assert split_of(sources(*(chr(0x4E00 + n) * 100 for n in range(60)))).kind == "passages"

    def test_files_and_rows_are_split_by_documents(self, tmp_path):
        (tmp_path / "a.jsonl").write_text("".join(f'"row {n} of them all"\n' for n in range(100)), encoding="utf-8")
        split = split_of(open_sources([tmp_path / "a.jsonl"]))
        assert (split.kind, split.documents) == ("documents", 100)
        assert split.sentence.startswith("Held out: 5 of 100 documents whole, ")

    def test_the_sample_of_documents_is_whole_too(self):
        text_sources = documents(*[100] * 200)
        sample = sample_split(text_sources)
        assert (list(sample.training), list(sample.held_out)) == tuple(sides(text_sources).values())

    def test_another_share_takes_documents_oftener(self):
        assert len(split_of(documents(*[100] * 200, percent=10)).held_out_documents) == 20


class TestOtherShares:
    def test_nothing_is_held_out_on_request_of_texts_of_any_length(self):
        for text_sources in (
            sources_of_texts([Document("a", "short")], held_out_percent=0),
            documents(*[100] * 60, percent=0),
        ):
            found = list(passages(text_sources))
            assert {p.side for p in found} == {"training"}
            assert "".join(p.text for p in found) == "".join(piece.text for piece in text_sources.pieces())
            assert "nothing, as asked" in split_of(text_sources).sentence
            sample = sample_split(text_sources)
            assert sample.held_out == ()
            assert "".join(sample.training) == "".join(training_texts(text_sources))

    def test_a_tenth_is_held_out_on_request(self):
        text_sources = sources_of_texts([Document("a", "ab" * 5000)], held_out_percent=10)
        assert [len(text) for text in sides(text_sources)["held_out"]] == [100] * 10
        assert split_of(text_sources).held_out_characters == 1000

    def test_too_short_a_text_names_the_way_out(self):
        with pytest.raises(DataError, match="--held-out 0"):
            list(passages(sources("too short")))


class TestSample:
    def test_a_short_text_is_sampled_whole(self):
        text_sources = sources("some words, " * 500)
        sample = sample_split(text_sources)
        assert (list(sample.training), list(sample.held_out)) == tuple(sides(text_sources).values())
        assert (sample.complete, sample.share) == (True, 1.0)

    def test_a_long_text_keeps_what_stands_next_to_the_cuts(self, monkeypatch):
        monkeypatch.setattr(pieces, "PIECE_CHARACTERS", 100)
        text_sources = sources("".join(chr(0x4E00 + place) for place in range(20_000)))
        sample, whole = sample_split(text_sources, utf8_bytes=6_000), sides(text_sources)
        assert not sample.complete
        assert [len(text) for text in sample.training] == [190] * 10
        assert [len(text) for text in sample.held_out] == [10] * 10
        assert all(full.endswith(part) for full, part in zip(whole["training"], sample.training, strict=True))
        assert all(full.startswith(part) for full, part in zip(whole["held_out"], sample.held_out, strict=True))
        assert sample.share == 0.1
