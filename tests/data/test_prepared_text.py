"""One or several prepared folders as the text of a run."""

from fractions import Fraction

import pytest

from pellucid.data import PreparedText, open_prepared_text, open_sources, prepare_folder, split_of
from pellucid.errors import ConfigError, DataError
from pellucid.text import train_byte_pairs

BEER = [f"{number} bottles of beer on the wall, {number * number} bottles\n" * 3 for number in range(200)]
SEA = [f"{number} ships upon the sea, and {number + 7} more of them\n" * 2 for number in range(120)]
TOKENIZER = train_byte_pairs([*BEER, *SEA], 300)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    def make(name, texts, tokenizer=TOKENIZER, held_out=5):
        folder = tmp_path_factory.mktemp("made")
        (folder / "text.txt").write_text("".join(texts), encoding="utf-8")
        sources = open_sources([folder / "text.txt"], held_out_percent=held_out)
        prepare_folder(sources, folder / name, lambda _: (tokenizer, ""), names=["t"], asked={}, processes=1)
        return sources, folder / name

    return make


@pytest.fixture(scope="module")
def beer(prepared):
    return prepared("beer", BEER)


@pytest.fixture(scope="module")
def sea(prepared):
    return prepared("sea", SEA)


def test_one_folder_says_what_its_sources_said(beer):
    sources, path = beer
    text = open_prepared_text([path])
    for name in ("characters", "utf8_bytes", "alphabet", "fingerprint", "held_out_percent"):
        assert getattr(text, name) == getattr(sources, name)
    assert (len(text.documents), text.split) == (len(sources.documents), split_of(sources))


def test_two_are_joined_passage_by_passage(beer, sea):
    text = open_prepared_text([beer[1], sea[1]], "0.7,0.3")
    data, parts = text.data(TOKENIZER), [folder.data(TOKENIZER) for folder in text.folders]
    assert [len(part) for part in data.parts] == [len(part.train) for part in parts]
    assert data.weights == (Fraction(7, 10), Fraction(3, 10))
    for tenth, piece in enumerate(data.held_out):
        assert piece.tokens.tolist() == [*parts[0].held_out[tenth].tokens, *parts[1].held_out[tenth].tokens]
        assert piece.characters == sum(part.held_out[tenth].characters for part in parts)
    assert data.training_characters == sum(part.training_characters for part in parts)


def test_the_sample_is_of_the_same_characters_as_the_held_out_passages(beer, sea):
    text = open_prepared_text([beer[1], sea[1]])
    lengths = [piece.characters for piece in text.data(TOKENIZER).held_out]
    assert [len(passage) for passage in text.sample().held_out] == lengths
    assert text.split.held_out_characters == sum(lengths)


def test_characters_per_token_are_of_the_tokens_that_come(beer, sea):
    rates = [open_prepared_text([path]).data(TOKENIZER).characters_per_token for _, path in (beer, sea)]
    mixed = open_prepared_text([beer[1], sea[1]], "1,3").data(TOKENIZER).characters_per_token
    assert mixed == pytest.approx(0.25 * rates[0] + 0.75 * rates[1])


def test_the_proportions_are_told_and_make_another_text(beer, sea):
    paths = [beer[1], sea[1]]
    one, other = open_prepared_text(paths, "0.7,0.3"), open_prepared_text(paths, "0.3,0.7")
    assert "beer 70.0% (" in one.notes[0]
    assert len({one.fingerprint, other.fingerprint, open_prepared_text(paths).fingerprint}) == 3


def test_a_run_finds_the_same_again(beer, sea):
    text = open_prepared_text([beer[1], sea[1]], "0.7,0.3")
    again = PreparedText.reopen(text.facts())
    assert (again.fingerprint, again.weights) == (text.fingerprint, text.weights)
    assert PreparedText.reopen(open_prepared_text([beer[1]]).facts()).weights is None


def test_another_tokenizer_is_refused_with_the_way_to_one(beer, prepared):
    _, other = prepared("other", SEA, train_byte_pairs(SEA, 290))
    with pytest.raises(DataError, match=r"a vocabulary of \d+ \(.*another with \d+ .*anew with --tokenizer"):
        open_prepared_text([beer[1], other])


def test_one_text_twice_is_refused(beer):
    with pytest.raises(DataError, match="the same one in"):
        open_prepared_text([beer[1], beer[1]])


def test_too_few_weights_are_refused(beer, sea):
    with pytest.raises(ConfigError, match="2 weights"):
        open_prepared_text([beer[1], sea[1]], "1")


def test_documents_that_two_have_in_common_are_told(tmp_path):
    tokenizer = train_byte_pairs(["one two three"], 257)
    folders = []
    for name, texts in (("a", ["one " * 99, "two " * 99]), ("b", ["three " * 99, "two " * 99])):
        (tmp_path / name).mkdir()
        for number, text in enumerate(texts):
            (tmp_path / name / f"{number}.txt").write_text(text, encoding="utf-8")
        sources = open_sources([tmp_path / name], held_out_percent=0)
        folders.append(
            prepare_folder(
                sources, tmp_path / f"{name}-d", lambda _, t=tokenizer: (t, ""), names=[name], asked={}, processes=1
            ).path
        )
    assert "1 document is in" in open_prepared_text(folders).notes[1]


def test_prepared_together_copies_are_left_out_across_sources(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").write_text("the same text " * 50, encoding="utf-8")
    (tmp_path / "b" / "c.jsonl").write_text('{"text": "' + "the same text " * 50 + '"}\n{"text": "another"}\n', "utf-8")
    sources = open_sources([tmp_path / "a", tmp_path / "b"], held_out_percent=0)
    assert [document.characters for document in sources.documents] == [700, 7]
    assert len(sources.documents.copies) == 2


def test_one_that_holds_nothing_out_is_mixed_with_one_that_does(beer, prepared):
    _, nothing = prepared("nothing", SEA, held_out=0)
    text = open_prepared_text([beer[1], nothing])
    assert [p.characters for p in text.data(TOKENIZER).held_out] == [
        p.characters for p in open_prepared_text([beer[1]]).data(TOKENIZER).held_out
    ]
    assert (text.held_out_percent, text.split.kind) == (5, "passages")
    alone = open_prepared_text([nothing])
    assert (alone.data(TOKENIZER).held_out, alone.held_out_percent) == ((), 0)
