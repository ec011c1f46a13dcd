import dataclasses
from pydoc_data.topics import topics

import pytest

from pellucid.data import Document, sources_of_texts, training_texts
from pellucid.errors import DataError, TokenizerError
from pellucid.text import character_tokenizer, train_byte_pairs
from pellucid.train import material as material_module
from pellucid.train.events import TextTokenized, YardsticksMeasured
from pellucid.train.material import make_material, make_tokenizer, measure, reopen_material
from pellucid.train.recipe import Recipe
from tests.train.small_run import Heard, small_sources, small_text

CHARACTERS = Recipe(tokenizer="characters")


def sources_of(text):
    return sources_of_texts([Document("text", text)])


MANY_LETTERS = sources_of("".join(chr(0x4E00 + number * number % 1201) for number in range(4_000)))


def test_the_tokenizer_learns_from_the_training_side_alone(tmp_path):
    text = small_text()
    held_out_only = sources_of(text[:2990] + "Ω" + text[2991:])
    assert make_tokenizer(held_out_only, CHARACTERS)[0].unknown_characters("Ω") == "Ω"
    in_training = sources_of("Ω" + text[1:])
    assert make_tokenizer(in_training, CHARACTERS)[0].unknown_characters("Ω") == ""


def test_a_tokenizer_from_elsewhere_is_used_as_it_is(tmp_path):
    tokenizer = character_tokenizer([small_text(), "more"])
    tokenizer.save(tmp_path / "tokenizer.json")
    recipe = Recipe(tokenizer=str(tmp_path / "tokenizer.json"))
    assert make_tokenizer(small_sources(), recipe)[0].fingerprint == tokenizer.fingerprint


def test_nothing_asked_for_means_what_the_script_of_the_text_needs():
    recipe = Recipe()
    tokenizer, reason = make_tokenizer(small_sources(), recipe)
    assert (tokenizer.kind, reason) == ("bpe", "hardly any of its tokens is part of a character")
    assert tokenizer.fingerprint == train_byte_pairs(training_texts(small_sources()), 512).fingerprint
    tokenizer, reason = make_tokenizer(MANY_LETTERS, recipe)
    assert tokenizer.kind == "characters"
    assert reason.startswith("of 512 byte pairs, the most for a text of this length, ")


def test_the_least_size_is_the_recipes():
    text = sources_of("\n".join(topics.values())[:100_000])
    assert make_tokenizer(text, Recipe(least_vocab_size=1024))[0].vocab_size == 1024


@pytest.mark.parametrize("tokenizer", [None, "bpe"])
def test_a_size_that_was_asked_for_is_not_measured(tokenizer):
    made, reason = make_tokenizer(MANY_LETTERS, Recipe(tokenizer=tokenizer, vocab_size=300))
    assert (made.kind, made.vocab_size, reason) == ("bpe", 300, "")


def test_a_size_that_the_text_does_not_fill_is_told():
    made, reason = make_tokenizer(small_sources(), Recipe(vocab_size=3000))
    assert made.vocab_size < 3000
    assert reason == "the text has no more pairs, though 3,000 were asked for"


def test_byte_pairs_that_were_asked_for_are_no_characters():
    tokenizer, reason = make_tokenizer(MANY_LETTERS, Recipe(tokenizer="bpe"))
    assert tokenizer.kind == "bpe"
    assert "% of its tokens are parts of a character" in reason


def test_why_these_tokens_is_told(tmp_path):
    heard = Heard()
    make_material(small_sources(), Recipe(), tmp_path, heard)
    assert heard[0].reason == "hardly any of its tokens is part of a character"


def test_a_tokenizer_that_cannot_write_the_text_is_refused_naming_what(tmp_path):
    character_tokenizer(["abc"]).save(tmp_path / "tokenizer.json")
    recipe = Recipe(tokenizer=str(tmp_path / "tokenizer.json"))
    with pytest.raises(TokenizerError, match="'d'"):
        make_material(small_sources(), recipe, tmp_path / "tokens", Heard())


def test_what_comes_of_a_text_is_told(tmp_path):
    heard = Heard()
    material = make_material(small_sources(), CHARACTERS, tmp_path, heard)
    assert heard == [
        TextTokenized(
            kind="characters",
            vocab_size=22,
            training_tokens=len(material.data.train),
            held_out_tokens=sum(len(piece.tokens) for piece in material.data.held_out),
            characters_per_token=1.0,
        )
    ]
    assert len(material.data.train) == 2850 + 10 + 1  # each tenth is a document, and the ring is closed


def test_a_text_that_spells_the_end_of_text_gets_no_end_there(tmp_path):
    """Special tokens in training text are text."""
    text = "<|endoftext|>".join([small_text(1500), small_text(1500, seed=1)])
    for recipe in (CHARACTERS, Recipe(tokenizer="bpe", vocab_size=300)):
        material = make_material(sources_of(text), recipe, tmp_path / recipe.tokenizer, Heard())
        ids = material.data.train.read(0, len(material.data.train))
        assert (ids == material.tokenizer.end_of_text_id).sum() == 11


def test_the_training_side_is_written_back_from_its_ids(tmp_path):
    material = make_material(small_sources(), CHARACTERS, tmp_path, Heard())
    written = "".join(material.training_text(tokens_at_once=100))
    assert written == "".join(training_texts(small_sources()))


def test_bits_per_character_and_nats_per_token_are_one_thing(tmp_path):
    material = make_material(small_sources(), Recipe(tokenizer="bpe", vocab_size=300), tmp_path, Heard())
    characters, tokens = 2850, len(material.data.train) - 11
    assert material.bits_per_nat == pytest.approx(tokens / characters * 1.4426950408889634)


def test_a_run_folder_gives_it_back_with_its_own_tokenizer_or_not_at_all(tmp_path):
    material = make_material(small_sources(), CHARACTERS, tmp_path / "tokens", Heard())
    material.tokenizer.save(tmp_path / "tokenizer.json")
    again = reopen_material(tmp_path / "tokens", tmp_path / "tokenizer.json")
    assert again.data.train.header == material.data.train.header
    other = character_tokenizer([small_text().replace("y", "Y")])  # as many characters, not the same
    assert other.vocab_size == material.tokenizer.vocab_size
    other.save(tmp_path / "tokenizer.json")
    with pytest.raises(DataError, match="ids of another"):
        reopen_material(tmp_path / "tokens", tmp_path / "tokenizer.json")


def test_yardsticks_are_measured_on_the_same_split_and_told():
    heard = Heard()
    measured = measure(small_sources(), heard)
    assert heard == [measured]
    assert isinstance(measured, YardsticksMeasured)
    assert measured.best_ngram < measured.letters < measured.chance
    assert sum(measured.held_out_characters) == 150


def test_of_a_long_text_an_even_part_is_searched_for_copies(tmp_path, monkeypatch):
    monkeypatch.setattr(material_module, "MOST_SEARCHED", 1000)
    material = make_material(small_sources(), CHARACTERS, tmp_path, Heard())
    blocks = list(material.training_text(tokens_at_once=100))
    assert material.searched_share == 1 / 3
    assert len(blocks) == -(-len(material.data.train) // 300)


def test_what_a_run_could_not_read_is_not_made_ready(tmp_path):
    heard = Heard()
    recipe = dataclasses.replace(CHARACTERS, most_characters=100_000)
    make_material(sources_of(small_text(400_000)), recipe, tmp_path, heard)
    (told,) = heard.of(TextTokenized)
    assert told.text_share == pytest.approx(0.25, rel=0.2)
    assert told.training_tokens < 120_000
