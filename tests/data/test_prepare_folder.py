"""A folder is prepared once and wholly, whatever happens on the way."""

import importlib
import json
from contextlib import suppress

import pytest

from pellucid.data import open_sources, prepare_folder
from pellucid.errors import DataError
from pellucid.text import character_tokenizer, train_byte_pairs

PROSE = "".join(f"{number} bottles of beer on the wall, {number * number} bottles\n" for number in range(400))
TOKENIZER = train_byte_pairs([PROSE], 300)


class Killed(BaseException):
    """No Exception."""


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text.txt").write_text(PROSE, encoding="utf-8")
    return open_sources([tmp_path / "text.txt"])


def made(text, folder, make_tokenizer=lambda _: (TOKENIZER, ""), **more):
    asked = more.pop("asked", {"tokenizer": None})
    return prepare_folder(text, folder, make_tokenizer, names=["text.txt"], asked=asked, processes=1, **more)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_it_holds_what_it_says_and_nothing_more(text, tmp_path):
    folder = made(text, tmp_path / "d")
    assert {path.name for path in folder.path.iterdir()} == {"card.json", *folder.card.files}
    assert not (tmp_path / "d.unfinished").exists()


def test_an_empty_folder_is_taken_and_any_other_is_refused(text, tmp_path):
    (tmp_path / "d").mkdir()
    made(text, tmp_path / "d")
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "mine.txt").touch()
    (tmp_path / "f").touch()
    for place in ("e", "f"):
        with pytest.raises(DataError, match="choose another --out"):
            made(text, tmp_path / place)
    assert not (tmp_path / "e.unfinished").exists()


def test_made_once_it_is_not_made_again(text, tmp_path):
    first = made(text, tmp_path / "d")
    again = made(text, tmp_path / "d", lambda _: pytest.fail("a tokenizer was made"))
    assert again.card == first.card


@pytest.mark.parametrize("done", ["whole", "half"])
def test_another_text_or_other_settings_are_refused_by_name(text, tmp_path, done):
    def stop(progress):
        if done == "half":
            raise Killed

    with suppress(Killed):
        made(text, tmp_path / "d", on_progress=stop)
    with pytest.raises(DataError, match=r'tokenizer "bpe" and not null'):
        made(text, tmp_path / "d", asked={"tokenizer": "bpe"})
    (tmp_path / "other.txt").write_text(PROSE[::-1], encoding="utf-8")
    with pytest.raises(DataError, match="got another text: choose"):
        made(open_sources([tmp_path / "other.txt"]), tmp_path / "d")
    made(text, tmp_path / "d")


def test_the_tokenizer_is_made_once_whatever_stops_it_later(text, tmp_path):
    calls = []

    def make(sources):
        calls.append(1)
        return TOKENIZER, "why"

    def stop(progress):
        raise Killed

    with pytest.raises(Killed):
        made(text, tmp_path / "d", make, on_progress=stop)
    assert made(text, tmp_path / "d", make).card.tokenizer_reason == "why"
    assert len(calls) == 1


@pytest.mark.parametrize("step", ["_write_card", "file_facts", "_publish", "force_to_disk"])
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_killed_at_the_end_it_is_not_taken_for_whole_and_goes_on(text, tmp_path, monkeypatch, step, before):
    whole = contents(made(text, tmp_path / "whole").path)
    module = importlib.import_module("pellucid.data.prepare_folder")
    own = getattr(module, step)

    def killed(*args):
        if before:
            raise Killed
        own(*args)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(module, step, killed)
        with pytest.raises(Killed):
            made(text, tmp_path / "d")
    if not (step == "_publish" and not before):
        assert not (tmp_path / "d").exists()
    assert contents(made(text, tmp_path / "d").path) == whole


def test_two_at_once_are_kept_apart(text, tmp_path):
    def again(progress):
        with pytest.raises(DataError, match="another process is writing"):
            made(text, tmp_path / "d")

    made(text, tmp_path / "d", on_progress=again)


def test_a_disk_that_refuses_is_a_sentence(text, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="to write a prepared folder at"):
        made(text, tmp_path / "file" / "d")


def test_the_card_is_json_that_anyone_can_read(text, tmp_path):
    card = json.loads((made(text, tmp_path / "d").path / "card.json").read_bytes())
    assert card["text"]["characters"] == len(PROSE)
    assert card["files"]["train.tokens"]["num_bytes"] == (tmp_path / "d" / "train.tokens").stat().st_size


def test_nothing_held_out_is_told_and_can_be_opened(tmp_path):
    (tmp_path / "text.txt").write_text(PROSE, encoding="utf-8")
    folder = made(open_sources([tmp_path / "text.txt"], held_out_percent=0), tmp_path / "d")
    assert (folder.card.held_out_tokens, folder.data(TOKENIZER).held_out, folder.sample().held_out) == (0, (), ())


@pytest.mark.parametrize("vocab_size", [65_535, 65_536, 65_537])
def test_ids_of_every_vocabulary_are_read_as_they_were_made(tmp_path, vocab_size):
    """Field note D10: nothing overflows at the bounds of a type."""
    letters = "".join(map(chr, [*range(0xE000, 0xE000 + 8000), *range(0x10000, 0x10000 + vocab_size - 8001)]))
    tokenizer = character_tokenizer([letters])
    assert tokenizer.vocab_size == vocab_size
    (tmp_path / "text.txt").write_text(letters, encoding="utf-8")
    text = open_sources([tmp_path / "text.txt"], held_out_percent=0)
    folder = prepare_folder(text, tmp_path / "d", lambda _: (tokenizer, ""), names=["x"], asked={}, processes=1)
    train = folder.data(tokenizer).train
    assert train.header.token_type == ("uint16" if vocab_size <= 65_536 else "uint32")
    assert train.read(1, len(train) - 1).tolist() == tokenizer.encode(letters).tolist()
