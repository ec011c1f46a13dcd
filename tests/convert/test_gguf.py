import numpy as np
import pytest
import torch
import transformers

from pellucid.convert.gguf import read_gguf
from pellucid.convert.gguf_file import GgufFile
from pellucid.errors import ModelFileError, TokenizerError
from tests.convert.read_by_transformers import read_by_transformers
from tests.convert.written_gguf import (
    gpt2_shapes,
    head_norms,
    random_tensors,
    shapes,
    sizes,
    write_gguf,
    write_llama,
)


def llama(heads, kv_heads):
    more = {"rope__dimension_count": 16, "rope__freq_base": 50000.0}
    more |= {"attention__head_count": heads, "attention__head_count_kv": kv_heads, "embedding_length": 16 * heads}
    return "llama", sizes("llama", **more), shapes(d_model=16 * heads, heads=heads, kv_heads=kv_heads), {}


WIDE = {"attention__key_length": 32, "attention__value_length": 32}
TIED = ("output.weight",)
QKV_BIAS = [("attn_q.bias", (64,)), ("attn_k.bias", (32,)), ("attn_v.bias", (32,))]
SANDWICH = [*head_norms(32), ("post_attention_norm.weight", (64,)), ("post_ffw_norm.weight", (64,))]
FAMILIES = {
    **{f"llama {heads}/{kv_heads}": llama(heads, kv_heads) for heads, kv_heads in ((8, 2), (6, 3), (4, 1), (8, 8))},
    "llama tied": ("llama", sizes("llama"), shapes(left_out=TIED), {}),
    "qwen2": ("qwen2", sizes("qwen2"), shapes(extra=QKV_BIAS), {}),
    "qwen3": ("qwen3", sizes("qwen3", **WIDE), shapes(d_head=32, extra=head_norms(32)), {"head_dim": 32}),
    "gemma3": (
        "gemma3",
        sizes("gemma3", **WIDE, block_count=7, attention__sliding_window=64, rope__freq_base=1e6),
        shapes(layers=7, d_head=32, extra=SANDWICH, left_out=TIED),
        {"query_pre_attn_scalar": 32},
    ),
    "gpt2": (
        "gpt2",
        sizes(
            "gpt2",
            feed_forward_length=256,
            attention__head_count_kv=None,
            attention__layer_norm_rms_epsilon=None,
            attention__layer_norm_epsilon=1e-5,
        ),
        gpt2_shapes(),
        {"n_positions": 700},
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_logits_are_those_of_transformers_on_the_same_file(tmp_path, name):
    architecture, entries, tensors, corrections = FAMILIES[name]
    path = write_gguf(tmp_path / "model.gguf", architecture, entries, random_tensors(tensors))
    ours, *_ = read_gguf(path)
    theirs = read_by_transformers(path, **corrections)
    token_ids = torch.randint(0, 90, (1, 600), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = theirs(token_ids).logits
        assert expected.std() > 0.5
        assert (ours(token_ids) - expected).abs().max() < 1e-4


def test_quantised_weights_are_the_library_s_numbers(tmp_path):
    kinds = {"blk.0.ffn_up.weight": "Q4_0", "blk.1.ffn_up.weight": "Q5_1", "token_embd.weight": "Q8_0"}
    path = write_llama(tmp_path / "model.gguf", kinds=kinds)
    model, *_ = read_gguf(path)
    assert model.token_embedding.weight.dtype == torch.float32
    for number in (0, 1):
        stored = GgufFile(path).read(f"blk.{number}.ffn_up.weight")
        assert np.array_equal(model.blocks[number].feed_forward.up.weight.detach().numpy(), stored)
        assert not np.array_equal(stored, random_tensors(shapes())[f"blk.{number}.ffn_up.weight"])


def test_a_head_that_is_a_copy_of_the_embedding_is_tied_and_another_is_not(tmp_path):
    embedding = random_tensors(shapes())["token_embd.weight"]
    copied = write_llama(tmp_path / "copied.gguf", more_tensors={"output.weight": embedding})
    assert read_gguf(copied)[0].config.tie_embeddings
    rounded = write_llama(
        tmp_path / "rounded.gguf", more_tensors={"output.weight": embedding}, kinds={"output.weight": "Q8_0"}
    )
    model, *_ = read_gguf(rounded)
    assert not model.config.tie_embeddings
    assert not torch.equal(model.lm_head.weight, model.token_embedding.weight)


def test_llama_3_s_scaling_is_found_in_its_rotary_factors(tmp_path):
    entries = {"llama.rope.freq_base": 500000.0, "llama.context_length": 16384}
    said = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0}
    said |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
    config = transformers.LlamaConfig(hidden_size=64, num_attention_heads=4, rope_parameters=said)
    config.max_position_embeddings = 16384
    scaled = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")[0]
    plain = 500000.0 ** -(torch.arange(0, 16, 2) / 16)
    factors = (plain / scaled).numpy().astype(np.float32)
    assert factors.max() == pytest.approx(8)
    model, *_ = read_gguf(
        write_llama(tmp_path / "scaled.gguf", entries=entries, more_tensors={"rope_freqs.weight": factors})
    )
    assert model.config.rope_scaling.kind == "llama3"
    assert model.config.rope_scaling.factor == pytest.approx(8)
    none = write_llama(tmp_path / "none.gguf", more_tensors={"rope_freqs.weight": np.ones(8, np.float32)})
    assert read_gguf(none)[0].config.rope_scaling is None
    factors[2] *= 1.1
    with pytest.raises(ModelFileError, match=r"rope_freqs\.weight"):
        read_gguf(write_llama(tmp_path / "x.gguf", entries=entries, more_tensors={"rope_freqs.weight": factors}))


def test_rows_that_no_token_uses_are_never_written(tmp_path):
    path = write_llama(tmp_path / "model.gguf", vocab=96)
    model, tokenizer, *_ = read_gguf(path)
    assert (model.config.vocab_size, model.config.num_unused_ids, tokenizer.vocab_size) == (96, 6, 90)
    with torch.no_grad():
        assert (model(torch.tensor([[1, 2]]))[..., 90:] == float("-inf")).all()
    with pytest.raises(TokenizerError, match="90 tokens and 64 rows"):
        read_gguf(write_llama(tmp_path / "few.gguf", vocab=64))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"left_out": ("blk.1.ffn_up.weight",)}, r"blk\.1\.ffn_up\.weight is missing"),
        ({"more_tensors": {"blk.0.extra.weight": np.zeros(3, np.float32)}}, r"blk\.0\.extra\.weight is unknown"),
        ({"d_ff": 128}, r"has shape \(128, 64\), not \(96, 64\)"),
        ({"more_tensors": {"blk.0.attn_q.bias": np.zeros(64, np.float32)}}, r"attn_k\.bias is missing"),
    ],
)
def test_weights_that_do_not_fit_are_named(tmp_path, changed, says):
    with pytest.raises(ModelFileError, match=says):
        read_gguf(write_llama(tmp_path / "model.gguf", **changed))
