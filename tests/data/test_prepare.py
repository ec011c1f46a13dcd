"""Sources and a tokenizer → token files: nothing lost, nothing on both sides, nothing left half done."""

import subprocess
import sys

import numpy as np
import pytest

from pellucid.data import (
    Document,
    escape_bits,
    open_prepared,
    open_sources,
    passages,
    pieces,
    prepare,
    sources_of_texts,
    split,
    training_texts,
)
from pellucid.errors import DataError, TokenizerError
from pellucid.text import END_OF_TEXT, character_tokenizer, train_byte_pairs

PROSE = "".join(
    f"{number} bottles of beer on the wall,\n\n  {number} bottles of bier: “naïve” 🍺.\n" for number in range(300)
)


def sources(*texts: str):
    return sources_of_texts(Document(str(number), text) for number, text in enumerate(texts))


def decoded(tokenizer, ids) -> str:
    return tokenizer.decode([i for i in ids.tolist() if i != tokenizer.end_of_text_id])


@pytest.fixture(scope="module")
def tokenizers():
    found = list(training_texts(sources(PROSE)))
    return {"characters": character_tokenizer(found), "bpe": train_byte_pairs(found, 400)}


@pytest.mark.parametrize("kind", ["characters", "bpe"])
@pytest.mark.parametrize("piece_characters", [97, 1 << 16])
def test_decoding_the_files_gives_the_text(tmp_path, monkeypatch, tokenizers, kind, piece_characters):
    monkeypatch.setattr(pieces, "PIECE_CHARACTERS", piece_characters)
    tokenizer, text_sources = tokenizers[kind], sources(PROSE)
    prepared = prepare(text_sources, tokenizer, tmp_path)
    found = list(passages(text_sources))
    expected = "".join(p.text for p in found if p.side == "training")
    assert decoded(tokenizer, prepared.train.read(0, len(prepared.train))) == expected
    for tenth, piece in enumerate(prepared.held_out):
        text = "".join(p.text for p in found if p.side == "held_out" and p.tenth == tenth)
        assert decoded(tokenizer, piece.tokens) == text
        assert (piece.characters, piece.escaped) == (len(text), 0)
    assert prepared.training_characters + prepared.held_out_characters == len(PROSE)


def test_tokens_do_not_depend_on_the_pieces(tmp_path, monkeypatch, tokenizers):
    whole = prepare(sources(PROSE), tokenizers["bpe"], tmp_path / "whole")
    monkeypatch.setattr(pieces, "PIECE_CHARACTERS", 300)
    cut = prepare(sources(PROSE), tokenizers["bpe"], tmp_path / "cut")
    assert np.array_equal(whole.train.read(0, len(whole.train)), cut.train.read(0, len(cut.train)))


def test_every_document_and_every_held_out_piece_begins_with_the_end_of_text(tmp_path, tokenizers):
    tokenizer = tokenizers["characters"]
    prepared = prepare(sources(PROSE[:5000], PROSE[5000:]), tokenizer, tmp_path)
    ids = prepared.train.read(0, len(prepared.train))
    assert np.flatnonzero(ids == tokenizer.end_of_text_id).tolist() == [
        *prepared.train.documents[:, 0].tolist(),
        len(ids) - 1,
    ]
    assert len(prepared.train.documents) == 11  # ten seams and one end of file
    assert [piece.tokens[0] for piece in prepared.held_out] == [tokenizer.end_of_text_id] * 10


def test_a_document_that_ends_in_a_held_out_passage_ends_there(tmp_path, tokenizers):
    tokenizer = tokenizers["characters"]
    bound = len(PROSE) // 10 - 20
    piece = prepare(sources(PROSE[:bound], PROSE[bound:]), tokenizer, tmp_path).held_out[0]
    ends = np.flatnonzero(piece.tokens == tokenizer.end_of_text_id)
    assert len(ends) == 2
    assert piece.characters == len(piece.tokens) - 2


def test_text_that_spells_the_end_of_text_stays_text(tmp_path):
    text = (f"some words {END_OF_TEXT} and more\n") * 100
    text_sources = sources(text)
    for tokenizer in (train_byte_pairs(training_texts(text_sources), 300), character_tokenizer([text])):
        prepared = prepare(text_sources, tokenizer, tmp_path / tokenizer.kind)
        ids = prepared.train.read(0, len(prepared.train))
        assert (ids == tokenizer.end_of_text_id).sum() == 11
        assert END_OF_TEXT in decoded(tokenizer, ids)


class TestUnseenCharacters:
    def test_held_out_ones_are_counted_and_left_out_of_the_ids(self, tmp_path):
        text = "ab" * 475 + "aXbYa" * 10 + "ab" * 4500
        text_sources = sources(text)
        tokenizer = character_tokenizer(training_texts(text_sources))
        prepared = prepare(text_sources, tokenizer, tmp_path)
        piece = prepared.held_out[0]
        assert (piece.characters, piece.escaped) == (50, 20)
        assert decoded(tokenizer, piece.tokens) == "aba" * 10
        assert [other.escaped for other in prepared.held_out[1:]] == [0] * 9
        assert prepared.held_out_characters == 500
        assert prepared.escape_bits == escape_bits(9_500, 2)

    def test_training_ones_are_an_error_that_names_them_and_leaves_nothing(self, tmp_path):
        with pytest.raises(TokenizerError, match="Z"):
            prepare(sources("ab" * 300 + "Z" + "ab" * 300), character_tokenizer(["ab"]), tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_an_escape_is_dearer_in_a_text_that_seldom_brings_new_ones(self):
        assert escape_bits(1_000_000, 76) > escape_bits(7_000, 2_000) > np.log2(1_112_064)


class TestOtherSplits:
    def test_nothing_held_out_leaves_everything_for_training_and_no_passage(self, tmp_path, tokenizers):
        everything = sources_of_texts([Document("a", PROSE)], held_out_percent=0)
        prepared = prepare(everything, tokenizers["bpe"], tmp_path)
        assert prepared.held_out == ()
        assert prepared.held_out_characters == 0
        assert decoded(tokenizers["bpe"], prepared.train.read(0, len(prepared.train))) == PROSE
        again = open_prepared(tmp_path, tokenizers["bpe"])
        assert again.held_out == ()
        assert again.training_characters == len(PROSE)

    def test_rows_are_documents_and_whole_ones_are_held_out(self, tmp_path, tokenizers):
        rows = [f"{number} bottles of beer on the wall" for number in range(400)]
        (tmp_path / "a.jsonl").write_text("".join(f'"{row}"\n' for row in rows), encoding="utf-8")
        tokenizer = tokenizers["bpe"]
        prepared = prepare(open_sources([tmp_path / "a.jsonl"]), tokenizer, tmp_path)
        assert len(prepared.train.documents) == 380
        assert len(prepared.held_out) == 10
        text = "".join(decoded(tokenizer, piece.tokens) for piece in prepared.held_out)
        training = decoded(tokenizer, prepared.train.read(0, len(prepared.train)))
        assert len(text) + len(training) == sum(map(len, rows))
        assert all((row in training) != (row in text) for row in rows[100:])


class TestRefusals:
    def test_data_of_another_tokenizer(self, tmp_path, tokenizers):
        prepare(sources(PROSE), tokenizers["bpe"], tmp_path)
        with pytest.raises(DataError, match=r"vocabulary 34, .*vocabulary 296, "):
            open_prepared(tmp_path, tokenizers["characters"])

    def test_sides_of_two_texts(self, tmp_path, tokenizers):
        prepare(sources(PROSE), tokenizers["bpe"], tmp_path / "a")
        prepare(sources(PROSE[:9000]), tokenizers["bpe"], tmp_path / "b")
        (tmp_path / "a" / "held_out.tokens").write_bytes((tmp_path / "b" / "held_out.tokens").read_bytes())
        with pytest.raises(DataError, match="of one text"):
            open_prepared(tmp_path / "a", tokenizers["bpe"])

    def test_missing_files(self, tmp_path, tokenizers):
        with pytest.raises(DataError, match=r"train\.tokens"):
            open_prepared(tmp_path, tokenizers["bpe"])

    def test_a_text_too_short_to_split_leaves_nothing(self, tmp_path, tokenizers):
        with pytest.raises(DataError, match="held-out split"):
            prepare(sources("short"), tokenizers["bpe"], tmp_path / "x")
        assert not list((tmp_path / "x").iterdir())

    def test_a_folder_that_cannot_be_written_is_a_sentence(self, tmp_path, tokenizers):
        (tmp_path / "x").write_bytes(b"a file, not a folder")
        with pytest.raises(DataError, match="to write token files"):
            prepare(sources(PROSE), tokenizers["bpe"], tmp_path / "x")


def test_progress_grows_to_one(tmp_path, monkeypatch, tokenizers):
    monkeypatch.setattr(pieces, "PIECE_CHARACTERS", 500)
    monkeypatch.setattr(sys.modules["pellucid.data.prepare"], "ENCODED_TOGETHER", 4000)
    told = []
    prepare(sources(PROSE), tokenizers["bpe"], tmp_path, on_progress=told.append)
    assert told == sorted(told)
    assert len(told) > 2
    assert told[-1] == 1.0


def test_opening_again_gives_the_same(tmp_path, tokenizers):
    first = prepare(sources(PROSE), tokenizers["bpe"], tmp_path)
    again = open_prepared(tmp_path, tokenizers["bpe"])
    assert [piece.tokens.tolist() for piece in first.held_out] == [piece.tokens.tolist() for piece in again.held_out]
    assert first.text_fingerprint == again.text_fingerprint == sources(PROSE).fingerprint
    assert first.characters_per_token == pytest.approx(first.training_characters / (len(first.train) - 11))


PREPARE_A_LARGE_TEXT = """
import sys
from pathlib import Path
from pellucid.data import open_sources, prepare, sample_split, split_of
from pellucid.text import train_byte_pairs
sources = open_sources([sys.argv[1]])
tokenizer = train_byte_pairs(["some words to learn from, 1 2 3\\n" * 1000], 300)
prepared = prepare(sources, tokenizer, Path(sys.argv[2]))
sample_split(sources)
expected = sources.characters - split_of(sources).held_out_characters
assert abs(prepared.training_characters - expected) < 320, "ten cuts, each moved to the end of a grapheme"
print(int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) >> 10)
"""


def peak_mebibytes(tmp_path, megabytes: int) -> int:
    line = "The quick brown fox jumps over the lazy dog, 1234567890 times; naïve Füchse 🦊 too.\n".encode()
    block = line * (1_000_000 // len(line))
    path = tmp_path / "large.txt"
    with path.open("wb") as file:
        for _ in range(megabytes):
            file.write(block)
    done = subprocess.run(
        [sys.executable, "-c", PREPARE_A_LARGE_TEXT, str(path), str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory counted in KiB")
def test_memory_does_not_grow_with_the_text(tmp_path):
    small, large = peak_mebibytes(tmp_path, 10), peak_mebibytes(tmp_path, 30)
    assert large < 1.15 * small
    assert large < 1500


@pytest.mark.skipif(sys.platform != "linux", reason="the platform's default encoding is set by LC_ALL")
def test_the_platforms_default_encoding_does_not_matter(tmp_path):
    (tmp_path / "a.txt").write_bytes(("emoji 🍺, a space\u200bof no width, 漢字\n" * 50).encode())
    script = (
        "import sys; from pathlib import Path; from pellucid.data import *; from pellucid.text import *\n"
        "s = open_sources([sys.argv[1]]); t = character_tokenizer(training_texts(s))\n"
        "prepare(s, t, Path(sys.argv[2])); print(t.fingerprint, ascii(s.alphabet))"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "a.txt"), str(tmp_path / "c")]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={"PYTHONUTF8": "0", "LC_ALL": "C", "PATH": ""}
    )
    here = open_sources([tmp_path / "a.txt"])
    tokenizer = character_tokenizer(training_texts(here))
    prepare(here, tokenizer, tmp_path / "here")
    assert done.stdout == f"{tokenizer.fingerprint} {here.alphabet!a}\n"
    for name in ("train.tokens", "held_out.tokens"):
        assert (tmp_path / "c" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


def test_a_byte_order_mark_and_cr_lf_do_not_change_the_ids(tmp_path, tokenizers):
    (tmp_path / "plain.txt").write_bytes(PROSE.encode())
    (tmp_path / "windows.txt").write_bytes(b"\xef\xbb\xbf" + PROSE.replace("\n", "\r\n").encode())
    plain, windows = (
        prepare(open_sources([tmp_path / f"{name}.txt"]), tokenizers["bpe"], tmp_path / name)
        for name in ("plain", "windows")
    )
    assert np.array_equal(plain.train.read(0, len(plain.train)), windows.train.read(0, len(windows.train)))


def test_of_a_long_text_the_passages_scored_are_those_that_the_yardsticks_score(tmp_path, monkeypatch, tokenizers):
    monkeypatch.setattr(split, "SAMPLE_BYTES", 4000)
    long = sources(PROSE)
    prepared = prepare(long, tokenizers["characters"], tmp_path)
    sample = split.sample_split(long, utf8_bytes=4000)
    assert not sample.complete
    assert [decoded(tokenizers["characters"], piece.tokens) for piece in prepared.held_out] == list(sample.held_out)
    assert [piece.characters for piece in prepared.held_out] == [len(text) for text in sample.held_out]


@pytest.mark.parametrize("share", [0.9, 0.5, 0.1])
def test_of_a_text_that_is_too_long_to_be_read_an_even_share_is_kept(tmp_path, monkeypatch, tokenizers, share):
    monkeypatch.setattr(pieces, "PIECE_CHARACTERS", 100)
    tokenizer, long = tokenizers["characters"], sources(PROSE)
    training = [passage.text for passage in passages(long) if passage.side == "training"]
    prepared = prepare(long, tokenizer, tmp_path, most_characters=share * len(PROSE))
    assert prepared.training_characters == pytest.approx(share * len(PROSE), rel=0.1)
    kept = decoded(tokenizer, prepared.train.read(0, len(prepared.train)))
    for quarter in range(4):
        part = training[len(training) * quarter // 4 : len(training) * (quarter + 1) // 4]
        assert sum(text in kept for text in part) == pytest.approx(share * len(part), rel=0.2, abs=2)
    starts = prepared.train.documents[:, 0].tolist()
    assert all(prepared.train.read(start, start + 1)[0] == tokenizer.end_of_text_id for start in starts)
    assert len(starts) >= min(share, 1 - share) * len(training)  # what follows a gap is a document of its own
