import pytest

from pellucid import presets
from pellucid.convert.huggingface_config import to_model_config
from pellucid.convert.huggingface_description import describe
from pellucid.convert.meaning import differences
from pellucid.errors import ModelFileError
from pellucid.model_config import ModelConfig
from tests.convert.outgoing_models import SHAPES


@pytest.mark.parametrize("shape", SHAPES)
def test_every_family_is_found_and_says_the_same_model(shape):
    family, fields = describe(SHAPES[shape])
    assert family.model_type.split("_")[0] == shape.split()[0]
    assert not differences(to_model_config(fields), SHAPES[shape])


def test_theta_is_written_in_both_spellings():
    _, fields = describe(SHAPES["llama 3.1"])
    assert fields["rope_theta"] == fields["rope_parameters"]["rope_theta"] == 500_000.0
    assert fields["rope_scaling"]["rope_type"] == fields["rope_parameters"]["rope_type"] == "llama3"


def test_local_layers_have_their_theta_in_both_spellings_too():
    _, fields = describe(SHAPES["gemma3"])
    assert fields["rope_local_base_freq"] == fields["rope_parameters"]["sliding_attention"]["rope_theta"] == 10_000.0


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (presets.default(logit_soft_cap=30.0), r"logit_soft_cap=30.0 \(Qwen3, the nearest, has none\)"),
        (presets.default(feed_forward="relu2"), r"feed_forward=relu2 \(Qwen3, the nearest, has swiglu\)"),
        (presets.default(positions="none"), "positions=none"),
        (presets.default(norm="none"), "norm=none"),
        (presets.default(norm_placement="post"), "norm_placement=post"),
        (presets.default(attention_scale=0.1), "attention_scale=0.1"),
        (presets.char_gpt(65), "head_bias=yes"),
        (
            ModelConfig(norm="mine.py:Norm@" + "0" * 64),
            r"norm of your own \(mine.py:Norm\), which no other runtime has",
        ),
    ],
)
def test_what_no_family_has_is_named(config, said):
    with pytest.raises(ModelFileError, match=said):
        describe(config)
