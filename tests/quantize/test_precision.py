import pytest
import torch

from pellucid.errors import ConfigError
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM
from pellucid.quantize import Int8Linear, precision, with_precision


@pytest.fixture
def model():
    return TransformerLM(ModelConfig(vocab_size=30, d_model=32, num_heads=2, num_layers=1))


def test_auto_leaves_weights_as_they_are_stored(model):
    model, told = with_precision(model, "auto")
    assert next(model.parameters()).dtype == torch.float32
    assert not told


def test_auto_widens_bfloat16_where_the_machine_has_none_and_says_so(model, monkeypatch):
    monkeypatch.setattr(precision, "computes_bfloat16", lambda device: False)
    model, told = with_precision(model.to(torch.bfloat16), "auto")
    assert next(model.parameters()).dtype == torch.float32
    assert "does not compute in" in told[0]


def test_int8_has_its_products_in_bfloat16_where_the_machine_computes_in_it(model, monkeypatch):
    monkeypatch.setattr(precision, "computes_bfloat16", lambda device: True)
    model, _ = with_precision(model, "int8")
    assert type(model.lm_head) is Int8Linear
    assert model.lm_head.product_type == torch.bfloat16


def test_an_unknown_precision_is_refused_with_those_there_are(model):
    with pytest.raises(ConfigError, match="auto, float32, bfloat16, int8"):
        with_precision(model, "int3")
