import re

import pytest

from pellucid import presets
from pellucid.convert import reaches
from pellucid.model_config import ModelConfig


def test_the_default_recipe_can_go_everywhere():
    reach = reaches(presets.default(), "bpe")
    assert (reach.hugging_face, reach.gguf) == (None, None)
    assert reach.sentence == "It can be exported to Hugging Face and GGUF (Qwen3)."


def test_characters_are_for_transformers_alone():
    reach = reaches(presets.default(), "characters")
    assert (reach.hugging_face, reach.gguf) == (None, "its tokens are characters")


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (presets.mistral(), r"Hugging Face \(Mistral\); not to GGUF: window=4096"),
        (presets.default(logit_soft_cap=30.0), "cannot be exported: logit_soft_cap=30.0"),
        (presets.default(feed_forward="relu2"), "cannot be exported: feed_forward=relu2"),
        (ModelConfig(norm="mine.py:Norm@" + "0" * 64), "cannot be exported: norm of your own"),
    ],
)
def test_what_is_in_the_way_is_named(config, sentence):
    assert re.search(sentence, reaches(config, "bpe").sentence)
