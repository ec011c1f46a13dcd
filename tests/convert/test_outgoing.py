import pytest
import torch

from pellucid.convert.outgoing import converted
from pellucid.errors import ModelFileError
from tests.convert.outgoing_models import SHAPES, byte_pairs, made, outgoing


def test_a_tied_head_is_not_among_the_weights():
    assert "lm_head.weight" not in outgoing(made(SHAPES["qwen3 tied"])).tensors


def test_ends_are_united_the_end_of_text_first():
    ends = outgoing(made(SHAPES["qwen3"]), end_ids=frozenset({5, 3, 0, 999})).end_ids
    assert ends == (byte_pairs().end_of_text_id, 3, 5)


def test_the_end_of_a_turn_is_the_end_the_template_writes():
    model = made(SHAPES["qwen3"])
    assert outgoing(model, chat_template="{{ x }}<|endoftext|>").end_of_turn_id == 0
    assert outgoing(model, chat_template="{{ x }}").end_of_turn_id is None
    assert outgoing(model).end_of_turn_id is None


def test_the_number_type_is_that_of_the_weights():
    assert outgoing(made(SHAPES["qwen3"])).number_type == "float32"
    assert outgoing(made(SHAPES["qwen3"]).bfloat16()).number_type == "bfloat16"


def test_numbers_too_large_for_float16_are_refused_by_name():
    with pytest.raises(ModelFileError, match=r"7e\+04 in blocks.0.x"):
        converted("blocks.0.x", torch.tensor([70_000.0]), torch.float16)


def test_what_is_float16_already_is_left_as_it_is():
    assert converted("x", torch.tensor([float("inf")], dtype=torch.float16), torch.float16).isinf().all()
