"""Factors as PEFT writes them: its names and numbers, and peft itself gives the same logits on the exported base."""

import json
import os

import pytest
import torch
from safetensors.torch import load_file

from pellucid import presets
from pellucid.convert import Outgoing, write_adapter
from pellucid.convert.huggingface_writing import write_hugging_face
from pellucid.errors import ModelFileError
from pellucid.lora import add_factors, trained_state
from pellucid.nn import TransformerLM
from pellucid.text import character_tokenizer
from tests.test_lora import IDS, with_filled_factors
from tests.train.small_run import small_model

LLAMA = {"vocab_size": 24, "d_model": 32, "num_layers": 2, "num_heads": 2, "num_kv_heads": 1, "context_length": 64}
GPT2 = {"vocab_size": 24, "d_model": 32, "num_layers": 2, "num_heads": 2, "context_length": 64}
MODELS = {
    "default": lambda: presets.default(**LLAMA),
    "llama": lambda: presets.llama(**LLAMA),
    "gpt2": lambda: presets.gpt2(**GPT2),
}


def filled(config, targets=(), **how):
    model, generator = TransformerLM(config), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0.0, 0.2, generator=generator)
        add_factors(model, rank=2, targets=targets, **how)
        for weight in trained_state(model).values():
            weight.normal_(0.0, 0.2, generator=generator)
    return model.eval()


def test_names_are_those_of_the_family_and_each_map_has_its_own(tmp_path):
    model = with_filled_factors(model={"num_kv_heads": 1})
    write_adapter(tmp_path / "adapter", model, trained_state(model), "somewhere")
    tensors = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    layer = "base_model.model.model.layers.0."
    assert tensors[f"{layer}self_attn.k_proj.lora_A.weight"].shape == (2, 32)
    assert tensors[f"{layer}self_attn.k_proj.lora_B.weight"].shape == (16, 2)
    assert len(tensors) == 7 * 2
    described = json.loads((tmp_path / "adapter" / "adapter_config.json").read_bytes())
    assert (described["r"], described["lora_alpha"], described["modules_to_save"]) == (2, 4.0, None)
    assert described["target_modules"] == sorted(f"{name}_proj" for name in ("q", "k", "v", "o", "gate", "up", "down"))


def test_a_fused_map_of_theirs_gets_ours_side_by_side(tmp_path):
    model = filled(presets.gpt2(**GPT2), targets=("query", "value", "down", "output"))
    write_adapter(tmp_path / "adapter", model, trained_state(model), "somewhere")
    tensors = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    described = json.loads((tmp_path / "adapter" / "adapter_config.json").read_bytes())
    name = "base_model.model.transformer.h.1.attn.c_attn"
    narrow, widen = tensors[f"{name}.lora_A.weight"], tensors[f"{name}.lora_B.weight"]
    assert (narrow.shape, widen.shape, described["rank_pattern"]) == ((4, 32), (96, 4), {"c_attn": 4})
    assert described["target_modules"] == ["attn.c_proj", "c_attn", "mlp.c_proj"]
    assert described["fan_in_fan_out"]
    assert not widen[32:64].any()


@pytest.mark.real
@pytest.mark.parametrize("vocabulary", [False, True], ids=["factors", "and the vocabulary"])
@pytest.mark.parametrize("name", MODELS)
def test_peft_gives_the_same_logits_on_the_exported_base(tmp_path, monkeypatch, name, vocabulary):
    peft, transformers = pytest.importorskip("peft"), pytest.importorskip("transformers")
    monkeypatch.setitem(os.environ, "HF_HUB_OFFLINE", "1")
    model = filled(MODELS[name](), train_vocabulary=vocabulary)
    base = TransformerLM(model.config).eval()
    base.load_state_dict({key: value for key, value in model.state_dict().items() if ".factors." not in key})
    if vocabulary:  # what was trained is not the base's
        base.token_embedding.weight.data.zero_()
        base.lm_head.weight.data.zero_()
    (tmp_path / "base").mkdir()
    tokenizer = character_tokenizer(["abcdefghijklmnopqrstuvw"])
    write_hugging_face(tmp_path / "base", Outgoing.of(base, tokenizer, name="base"), "float32")
    write_adapter(tmp_path / "adapter", model, trained_state(model), str(tmp_path / "base"))
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "base", dtype=torch.float32)
    theirs = peft.PeftModel.from_pretrained(theirs, tmp_path / "adapter").eval()
    with torch.no_grad():
        torch.testing.assert_close(theirs(IDS).logits, model(IDS), rtol=1e-5, atol=1e-5)


def test_a_model_of_no_family_is_told(tmp_path):
    model = add_factors(small_model(logit_soft_cap=5.0), rank=2)
    with pytest.raises(ModelFileError, match="logit_soft_cap"):
        write_adapter(tmp_path / "adapter", model, trained_state(model), "somewhere")
