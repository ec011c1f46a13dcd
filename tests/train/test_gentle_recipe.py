"""A model that has learned already is trained on gently."""

from itertools import pairwise

from pellucid.model_config import ModelConfig
from pellucid.train.gentle_recipe import LONGEST_ROW, choose_gentle_recipe
from pellucid.train.recipe import choose_recipe


def of(d_model=192, weights=2_000_000, characters=10**6, device="cpu", context_length=256):
    config = ModelConfig(d_model=d_model, num_heads=1, context_length=context_length)
    return choose_gentle_recipe(config, weights, characters, device=device, rate=1.0)


def test_every_rate_is_far_below_that_from_scratch_and_nothing_decays():
    gentle, scratch = of().optimizer, choose_recipe(10**6, 5.0).optimizer
    assert (gentle.matrix_algorithm, gentle.matrix_weight_decay, gentle.embedding_weight_decay) == ("adamw", 0.0, 0.0)
    for name in ("embedding_learning_rate", "head_learning_rate", "vector_learning_rate"):
        assert getattr(gentle, name) < getattr(scratch, name) / 3


def test_wide_models_are_moved_more_gently():
    rates = [of(d_model=d_model).optimizer.matrix_learning_rate for d_model in (64, 192, 576, 2048)]
    assert all(narrow > wide for narrow, wide in pairwise(rates))


def test_rows_are_no_longer_than_the_model_can_read_nor_than_is_worth_it():
    assert of(context_length=100).model == {"context_length": 100}
    assert of(context_length=8192).model == {"context_length": LONGEST_ROW}


def test_a_large_model_takes_fewer_tokens_a_step_on_a_processor():
    assert of().batch_size > of(weights=135_000_000, context_length=512).batch_size >= 1
    assert of(device="cuda", weights=135_000_000).batch_size == of(device="cuda").batch_size


def test_a_short_text_is_read_in_several_steps():
    assert of(characters=4 * 256 * 20).batch_size == 2
    assert of(characters=300).batch_size == 1
