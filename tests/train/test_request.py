import json
from dataclasses import replace

import pytest

from pellucid.data import Document, sources_of_texts
from pellucid.errors import ConfigError, DataError
from pellucid.train.recipe import CHARACTERS_PER_MINUTE, choose_recipe
from pellucid.train.request import DEFAULT_MINUTES, Request
from pellucid.training_config import TrainingConfig
from tests.train.small_run import MODEL, small_request, small_sources


def test_nothing_asked_for_means_five_minutes_and_the_planners_recipe(tmp_path):
    request = Request(sources=small_sources(), name="words", out=tmp_path)
    assert request.minutes == DEFAULT_MINUTES == 5.0
    assert request.recipe() == choose_recipe(3000, DEFAULT_MINUTES)


def test_steps_mean_no_minutes(tmp_path):
    assert small_request(tmp_path, steps=7).minutes is None
    assert small_request(tmp_path, steps=None, minutes=2.0).minutes == 2.0


def test_what_is_asked_for_stands_over_the_recipe(tmp_path):
    recipe = small_request(
        tmp_path,
        tokenizer="bpe",
        vocab_size=300,
        model={"d_ff": 64},
        batch_size=3,
        optimizer={"momentum": 0.5},
        schedule={"shape": "cosine"},
    ).recipe()
    chosen = choose_recipe(3000, DEFAULT_MINUTES)
    assert (recipe.tokenizer, recipe.vocab_size, recipe.batch_size) == ("bpe", 300, 3)
    assert recipe.model == chosen.model | MODEL | {"d_ff": 64}
    assert (recipe.optimizer.momentum, recipe.optimizer.beta1) == (0.5, chosen.optimizer.beta1)
    assert (recipe.schedule.shape, recipe.schedule.warm_up_steps) == ("cosine", chosen.schedule.warm_up_steps)


@pytest.mark.parametrize("preset", ["gpt2", "char-gpt"])
def test_a_preset_takes_sizes_too(tmp_path, preset):
    request = small_request(
        tmp_path, preset=preset, tokenizer=None, model={"d_model": 64, "d_head": 16, "num_heads": 4}
    )
    assert request.recipe().model_config(50).d_model == 64


def test_a_model_that_cannot_be_is_refused_at_once(tmp_path):
    with pytest.raises(ConfigError, match="num_heads"):
        small_request(tmp_path, model={"num_heads": 5}).recipe()


@pytest.mark.parametrize("tokenizer", ["characters", "some/tokenizer.json"])
def test_a_number_of_ids_for_a_tokenizer_that_learns_none_is_refused(tmp_path, tokenizer):
    with pytest.raises(ConfigError, match="vocab_size=300 for the tokenizer"):
        small_request(tmp_path, tokenizer=tokenizer, vocab_size=300).recipe()


def test_a_number_of_ids_that_the_text_cannot_fill_is_refused_if_it_was_asked_for(tmp_path):
    sources = small_sources(210)
    with pytest.raises(ConfigError, match="210 bytes of text can fill, of at most 467, but got 468"):
        small_request(tmp_path, sources=sources, tokenizer="bpe", vocab_size=468).recipe()
    recipe = small_request(tmp_path, sources=sources, tokenizer="bpe").recipe()
    assert (recipe.vocab_size, recipe.least_vocab_size) == (None, 512)  # a learned one ends where the pairs do


def test_a_context_that_no_text_of_this_size_fills_is_refused_before_memory_is_asked_for(tmp_path):
    with pytest.raises(DataError, match="at least 1,000,000,001 tokens in the training split, but got a text of 3,000"):
        small_request(tmp_path, model={"context_length": 10**9}).recipe()
    assert small_request(tmp_path, model={"context_length": 3000}).recipe()  # for the tokens to say


def test_what_makes_a_run_what_it_is_comes_back_from_json_the_same(tmp_path):
    request = small_request(tmp_path / "a run", model={"layer_pattern": ("local", "global"), "window": 4})
    decided = request.first_facts(request.recipe())
    assert decided["name"] == "a run"
    assert decided["config"]["training"]["steps"] == 6
    assert decided["data"]["fingerprint"] == request.sources.fingerprint
    again = json.loads(json.dumps(decided))
    assert again["config"]["optimizer"] == decided["config"]["optimizer"]
    assert TrainingConfig(**again["config"]["training"]) == request.training


def test_what_is_said_of_the_text_is_the_survey(tmp_path):
    said = small_request(tmp_path).text_read()
    assert (said.name, said.documents, said.characters, said.distinct_characters) == ("words.txt", 1, 3000, 21)


def test_the_split_is_recorded_and_told_if_it_is_not_the_usual_one(tmp_path):
    usual = small_request(tmp_path)
    assert usual.first_facts(usual.recipe())["data"]["held_out"]["kind"] == "passages"
    assert not any("Held out" in note for note in usual.text_read().notes)
    text = "".join(piece.text for piece in usual.sources.pieces())
    everything = replace(usual, sources=sources_of_texts([Document("words", text)], held_out_percent=0))
    assert everything.first_facts(everything.recipe())["data"]["held_out"]["kind"] == "none"
    assert everything.text_read().notes[-1].startswith("Held out: nothing")


def test_steps_and_accelerators_may_read_all_of_a_text_minutes_on_a_processor_what_fits(tmp_path):
    def most(**training):
        return small_request(tmp_path / "run", steps=training.pop("steps", None), **training).recipe().most_characters

    assert most(minutes=2.0) == 2 * CHARACTERS_PER_MINUTE
    assert most(steps=10) is None


def test_a_number_of_pairs_that_was_asked_for_means_pairs_however_short_the_text(tmp_path):
    recipe = small_request(tmp_path, tokenizer=None, vocab_size=300).recipe()
    assert (recipe.tokenizer, recipe.vocab_size) == ("bpe", 300)
