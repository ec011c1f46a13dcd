"""New tokens leave every old logit as it was, to the last bit, and score the mean of them."""

from dataclasses import replace

import pytest
import torch

from pellucid import presets
from pellucid.errors import ConfigError
from pellucid.train.new_rows import with_new_rows
from tests.train.small_run import small_model

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]])


def longer_by(model, num_new):
    config = model.config
    num_ids = config.vocab_size - config.num_unused_ids + num_new
    size = max(config.vocab_size, num_ids)
    return with_new_rows(model, replace(config, vocab_size=size, num_unused_ids=size - num_ids))


@pytest.mark.parametrize("num_new", [1, 2, 7, 40])
@pytest.mark.parametrize("changes", [{}, {"tie_embeddings": True}, {"num_unused_ids": 5}, {"vocab_size": 513}], ids=str)
def test_old_logits_stay_as_they_were_to_the_last_bit(changes, num_new):
    model = small_model(**changes).eval()
    used = model.config.vocab_size - model.config.num_unused_ids
    with torch.no_grad():
        before = model(IDS)[..., :used]
        after = longer_by(model, num_new).eval()(IDS)
    assert torch.equal(after[..., :used], before)
    torch.testing.assert_close(after[..., used], before.mean(-1), rtol=1e-4, atol=1e-4)  # of a linear map


def test_padding_rows_are_used_before_the_vocabulary_grows():
    model = small_model(num_unused_ids=5)
    assert (longer_by(model, 3).config.vocab_size, longer_by(model, 3).config.num_unused_ids) == (24, 2)
    assert (longer_by(model, 7).config.vocab_size, longer_by(model, 7).config.num_unused_ids) == (26, 0)


def test_a_bfloat16_model_becomes_float32_without_a_change():
    model = small_model().to(torch.bfloat16)
    kept = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    made = with_new_rows(model, model.config)
    assert {tensor.dtype for tensor in made.state_dict().values()} == {torch.float32}
    assert all(torch.equal(made.state_dict()[name], tensor.float()) for name, tensor in kept.items())


def test_tied_weights_stay_tied():
    made = longer_by(small_model(tie_embeddings=True), 2)
    assert made.lm_head.weight is made.token_embedding.weight


def test_dropout_is_the_new_one():
    model = small_model()
    made = with_new_rows(model, replace(model.config, dropout=0.5))
    assert {block.dropout for block in made.blocks} == {0.5}


def test_ids_are_not_taken_away():
    with pytest.raises(ConfigError, match="at least 24 ids"):
        with_new_rows(small_model(), presets.default(vocab_size=20))
