"""A prepared folder is whole or refused, and what a run began with is known again."""

import os

import pytest

from pellucid.data import PreparedFolder, is_prepared, open_sources, prepare, prepared_folder, sample_split
from pellucid.data.prepare_folder import prepare_folder
from pellucid.data.prepared_folder import sampled_hash
from pellucid.errors import DataError
from pellucid.text import train_byte_pairs

PROSE = "".join(f"{number} bottles of beer on the wall, {number * number} bottles\n" for number in range(400))
TOKENIZER = train_byte_pairs([PROSE], 300)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    (folder / "text.txt").write_text(PROSE, encoding="utf-8")
    sources = open_sources([folder / "text.txt"])
    return sources, prepare_folder(
        sources, folder / "d", lambda _: (TOKENIZER, "why"), names=["text.txt"], asked={}, processes=1
    )


@pytest.fixture
def copied(made, tmp_path):
    for path in made[1].path.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def test_it_holds_what_training_on_the_text_would_hold(made, tmp_path):
    sources, folder = made
    here, there = prepare(sources, TOKENIZER, tmp_path), folder.data(TOKENIZER)
    assert (folder.path / "train.tokens").read_bytes() == (tmp_path / "train.tokens").read_bytes()
    assert (folder.path / "held_out.tokens").read_bytes() == (tmp_path / "held_out.tokens").read_bytes()
    assert there.escape_bits == here.escape_bits
    assert folder.sample() == sample_split(sources)
    assert folder.tokenizer().fingerprint == TOKENIZER.fingerprint


def test_its_card_is_what_was_found(made):
    sources, folder = made
    card = folder.card
    assert (card.sources, card.tokenizer_reason, card.fingerprint) == (("text.txt",), "why", sources.fingerprint)
    assert card.training_tokens == len(folder.data(TOKENIZER).train)
    assert folder.documents().tolist() == sources.documents.short_hashes().tolist()


@pytest.mark.parametrize("name", ["train.tokens", "held_out.tokens", "tokenizer.json", "sample.json"])
def test_a_file_that_changed_or_is_gone_is_told_by_its_name(copied, name):
    content = (copied / name).read_bytes()
    (copied / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(DataError, match=rf"{name} as it was when the folder was made, but got a file that has changed"):
        PreparedFolder.open(copied)
    (copied / name).unlink()
    with pytest.raises(DataError, match=rf"{name}.*no file"):
        PreparedFolder.open(copied)


@pytest.mark.parametrize("card", ["", "[]", '{"format": "other"}'])
def test_a_card_that_says_nothing_is_refused(copied, card):
    (copied / "card.json").write_text(card)
    with pytest.raises(DataError, match="prepare the text anew"):
        PreparedFolder.open(copied)


def test_a_card_of_another_version_is_refused(copied):
    card = (copied / "card.json").read_text(encoding="utf-8")
    (copied / "card.json").write_text(card.replace('"version": 1', '"version": 2'), encoding="utf-8")
    with pytest.raises(DataError, match="version 2"):
        PreparedFolder.open(copied)


def test_a_run_finds_it_again_wherever_nothing_changed(copied):
    facts = PreparedFolder.open(copied).facts()
    assert PreparedFolder.reopen(facts).card.vocab_size == TOKENIZER.vocab_size
    os.utime(copied / "train.tokens", (1, 1))  # touched, and the same to the last byte
    PreparedFolder.reopen(facts)


def test_a_change_that_no_look_at_a_few_places_would_see_is_found_by_its_time(copied, monkeypatch):
    monkeypatch.setattr("pellucid.data.prepared_folder.sampled_hash", lambda path: "the same")
    facts = PreparedFolder(copied, prepared_folder._card(copied)).facts()
    for file in facts["files"].values():
        file["sampled"] = "the same"
    PreparedFolder.reopen(facts)
    content = bytearray((copied / "train.tokens").read_bytes())
    content[5000] ^= 1
    (copied / "train.tokens").write_bytes(content)
    with pytest.raises(DataError, match=r"train.tokens as it was when the run began"):
        PreparedFolder.reopen(facts)


def test_another_folder_in_its_place_is_refused(copied, tmp_path_factory):
    facts = PreparedFolder.open(copied).facts()
    other = "".join(reversed(PROSE))
    source = tmp_path_factory.mktemp("other") / "text.txt"
    source.write_text(other, encoding="utf-8")
    new = prepare_folder(
        open_sources([source]), source.parent / "d", lambda _: (TOKENIZER, ""), names=["x"], asked={}, processes=1
    )
    with pytest.raises(DataError, match="as it was when the run began"):
        PreparedFolder.reopen(facts | {"path": str(new.path)})


def test_a_large_file_is_looked_at_in_places_from_its_beginning_to_its_end(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(5 << 30)  # sparse
    seen = {sampled_hash(path)}
    for place in (0, (5 << 30) - 1):
        with path.open("r+b") as file:
            file.seek(place)
            file.write(b"\1")
        seen.add(sampled_hash(path))
    assert len(seen) == 3


def test_only_a_folder_with_a_card_or_an_unfinished_one_is_prepared(made, tmp_path):
    (tmp_path / "d.unfinished").mkdir()
    assert is_prepared(made[1].path)
    assert is_prepared(tmp_path / "d.unfinished")
    assert not is_prepared(tmp_path)
    with pytest.raises(DataError, match="run the same pellucid prepare again"):
        PreparedFolder.open(tmp_path / "d.unfinished")
