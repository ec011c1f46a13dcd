"""Checkpoints of nanoGPT, CS336 and LLMs-from-scratch give the logits of the model that wrote them."""

import json
import pickle

import pytest
import torch

from pellucid.convert.torch_checkpoint import open_torch_checkpoint
from pellucid.cs336 import run_transformer_lm
from pellucid.errors import ModelFileError, TokenizerError
from pellucid.text import character_tokenizer
from tests.convert.random_models import make_gpt2, make_model

TOKENIZER = character_tokenizer(["".join(map(chr, range(33, 129)))])  # 97 ids
NEAR = 1e-4  # weights of deviation 0.1, float32
NANO = {"n_layer": 2, "n_head": 4, "n_embd": 96, "block_size": 640, "bias": True, "vocab_size": 97, "dropout": 0.2}


@torch.no_grad()
def difference(path, expected, length=300):
    ids = torch.randint(97, (1, length), generator=torch.Generator().manual_seed(1))
    foreign = open_torch_checkpoint(path, TOKENIZER)
    wanted = expected(ids)
    assert wanted.std() > 0.3
    return (foreign.model()(ids) - wanted).abs().max()


def in_nanogpts_words(model):
    """GPT-2's weights as nanoGPT has them: linear layers, the other way round than Conv1D."""
    turned = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
    return {name: one.T.contiguous() if name.endswith(turned) else one for name, one in model.state_dict().items()}


@pytest.fixture
def nano(tmp_path):
    theirs = make_gpt2(activation_function="gelu", n_inner=None)
    torch.save({"model": in_nanogpts_words(theirs), "model_args": NANO, "iter_num": 3}, tmp_path / "ckpt.pt")
    return tmp_path / "ckpt.pt", theirs


def test_nanogpt(nano):
    path, theirs = nano
    assert difference(path, lambda ids: theirs(ids).logits) < NEAR


def test_nanogpt_compiled_and_without_biases(tmp_path):
    theirs = make_gpt2(activation_function="gelu", n_inner=None)
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            parameter.mul_(0 if name.endswith("bias") else 1)
    weights = in_nanogpts_words(theirs)
    weights = {f"_orig_mod.{name}": one for name, one in weights.items() if not name.endswith(".bias")}
    torch.save({"model": weights, "model_args": {**NANO, "bias": False}}, tmp_path / "ckpt.pt")
    assert difference(tmp_path / "ckpt.pt", lambda ids: theirs(ids).logits) < NEAR


SIZES = {"vocab_size": 97, "context_length": 320, "d_model": 64, "num_layers": 2, "num_heads": 4, "d_ff": 96}


def course_weights():
    torch.manual_seed(0)
    d_model, d_ff = SIZES["d_model"], SIZES["d_ff"]
    each = {"attn.q_proj": (d_model, d_model), "attn.k_proj": (d_model, d_model), "attn.v_proj": (d_model, d_model)}
    each |= {"attn.output_proj": (d_model, d_model), "ln1": (d_model,), "ln2": (d_model,)}
    each |= {"ffn.w1": (d_ff, d_model), "ffn.w2": (d_model, d_ff), "ffn.w3": (d_ff, d_model)}
    names = {f"layers.{i}.{name}.weight": shape for i in range(2) for name, shape in each.items()}
    names |= {"token_embeddings.weight": (97, d_model), "ln_final.weight": (d_model,), "lm_head.weight": (97, d_model)}
    return {name: torch.randn(shape) * 0.1 + (len(shape) == 1) for name, shape in names.items()}


@pytest.mark.parametrize("where", ["beside", "inside"])
def test_cs336(tmp_path, where):
    path, weights, sizes = tmp_path / "course.pt", course_weights(), {**SIZES, "rope_theta": 500.0}
    if where == "beside":
        (tmp_path / "course.json").write_text(json.dumps(sizes))
        torch.save(weights, path)
    else:
        torch.save({"model": weights, "iteration": 1, "config": sizes}, path)
    assert difference(path, lambda ids: run_transformer_lm(**sizes, weights=weights, in_indices=ids)) < NEAR


BOOK = {"vocab_size": 97, "context_length": 640, "emb_dim": 96, "n_heads": 8, "n_layers": 3, "hidden_dim": 80}
PARTS = {
    "model.embed_tokens.": "tok_emb.",
    "model.layers.": "trf_blocks.",
    "self_attn.q_proj.": "att.W_query.",
    "self_attn.k_proj.": "att.W_key.",
    "self_attn.v_proj.": "att.W_value.",
    "self_attn.o_proj.": "att.out_proj.",
    "mlp.gate_proj.": "ff.fc1.",
    "mlp.up_proj.": "ff.fc2.",
    "mlp.down_proj.": "ff.fc3.",
    "input_layernorm.": "norm1.",
    "post_attention_layernorm.": "norm2.",
    "self_attn.q_norm.": "att.q_norm.",
    "self_attn.k_norm.": "att.k_norm.",
    "model.norm.": "final_norm.",
    "lm_head.": "out_head.",
}


def in_the_books_words(model, norm):
    weights = {}
    for name, tensor in model.state_dict().items():
        for theirs, books in PARTS.items():
            name = name.replace(theirs, books)
        weights[name.replace(".weight", f".{norm}") if "norm" in name else name] = tensor
    return weights


@pytest.mark.parametrize("tied", [False, True])
def test_the_books_llama_with_stretched_rope(tmp_path, tied):
    theirs = make_model("llama 3.1", 8, 2, tie_word_embeddings=tied, rms_norm_eps=1e-5)
    told = {**BOOK, "n_kv_groups": 2, "rope_base": 500_000.0, "dtype": "bfloat16"}
    told["rope_freq"] = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_context_length": 128}
    (tmp_path / "llama.json").write_text(json.dumps(told))
    weights = {**in_the_books_words(theirs, "weight"), "trf_blocks.0.att.mask": torch.ones(3, 3), "cos": torch.ones(3)}
    torch.save(weights, tmp_path / "llama.pth")
    assert difference(tmp_path / "llama.pth", lambda ids: theirs(ids).logits) < NEAR
    assert open_torch_checkpoint(tmp_path / "llama.pth", TOKENIZER).config.tie_embeddings == tied


def test_the_books_qwen3(tmp_path):
    theirs = make_model("qwen3", 8, 2, d_head=16)
    told = {**BOOK, "n_kv_groups": 2, "rope_base": 1e6, "head_dim": 16, "qk_norm": True}
    (tmp_path / "model_config.json").write_text(json.dumps(told))
    torch.save(in_the_books_words(theirs, "scale"), tmp_path / "qwen3.pth")
    assert difference(tmp_path / "qwen3.pth", lambda ids: theirs(ids).logits) < NEAR


def test_the_books_gpt_of_a_known_width_needs_no_sizes(tmp_path):
    theirs = make_gpt2(12, n_embd=768, n_inner=None, n_layer=1)
    weights = {}
    for name, tensor in theirs.state_dict().items():
        books = name.removeprefix("transformer.").replace("h.", "trf_blocks.")
        for theirs_part, part in (("wte.", "tok_emb."), ("wpe.", "pos_emb."), ("ln_1.", "norm1."), ("ln_2.", "norm2.")):
            books = books.replace(theirs_part, part)
        books = books.replace("ln_f.", "final_norm.").replace("lm_head.", "out_head.")
        books = books.replace("attn.c_proj", "att.out_proj").replace("mlp.c_fc", "ff.layers.0")
        books = books.replace("mlp.c_proj", "ff.layers.2")
        tensor = tensor.T.contiguous() if tensor.ndim == 2 and "trf_blocks" in books else tensor
        if "norm" in books:
            books = books.replace(".weight", ".scale").replace(".bias", ".shift")
        if "c_attn" in books:
            names = (books.replace("attn.c_attn", f"att.W_{part}") for part in ("query", "key", "value"))
            weights |= {name: one.clone() for name, one in zip(names, tensor.chunk(3), strict=True)}
        else:
            weights[books] = tensor
    torch.save({"model_state_dict": weights, "optimizer_state_dict": {}}, tmp_path / "gpt.pth")
    assert difference(tmp_path / "gpt.pth", lambda ids: theirs(ids).logits) < NEAR


def test_sizes_that_nobody_tells_are_asked_for(tmp_path):
    torch.save(course_weights(), tmp_path / "course.pt")
    with pytest.raises(ModelFileError, match=r"course\.json.*no vocab_size.*num_heads"):
        open_torch_checkpoint(tmp_path / "course.pt", TOKENIZER)
    (tmp_path / "course.json").write_text(json.dumps({**SIZES, "num_heads": 7}))
    with pytest.raises(ModelFileError, match=r"course\.json.*num_heads=7"):
        open_torch_checkpoint(tmp_path / "course.pt", TOKENIZER)
    (tmp_path / "course.json").write_text(json.dumps({**SIZES, "num_experts": 7}))
    with pytest.raises(ModelFileError, match=r"num_experts=7"):
        open_torch_checkpoint(tmp_path / "course.pt", TOKENIZER)


def test_a_missing_tokenizer_is_asked_for_and_a_pickled_one_left_alone(nano):
    path, _ = nano
    with pytest.raises(TokenizerError, match=r"none.*--tokenizer.*GPT-2"):
        open_torch_checkpoint(path)
    path.with_name("meta.pkl").write_bytes(b"anything")
    with pytest.raises(TokenizerError, match=r"meta\.pkl, a pickle.*left alone.*--tokenizer"):
        open_torch_checkpoint(path)
    TOKENIZER.save(path.with_name("tokenizer.json"))
    assert open_torch_checkpoint(path).required_tokenizer().fingerprint == TOKENIZER.fingerprint


class Marker:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.mark.parametrize("inside", [False, True])
def test_code_is_never_run(tmp_path, inside):
    path, marker = tmp_path / "ckpt.pt", Marker(str(tmp_path / "marker"))
    if inside:
        torch.save({"model": {}, "model_args": marker}, path)
    else:
        path.write_bytes(pickle.dumps(marker))
    with pytest.raises(ModelFileError, match="code"):
        open_torch_checkpoint(path, TOKENIZER)
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("held", [3, {"model": 3}, {"odd.weight": torch.ones(2)}, [torch.ones(2)]])
def test_another_checkpoint_is_refused_with_what_is_known(tmp_path, held):
    torch.save(held, tmp_path / "odd.pt")
    with pytest.raises(ModelFileError, match=r"nanoGPT, CS336 or LLMs-from-scratch.*odd\.pt"):
        open_torch_checkpoint(tmp_path / "odd.pt", TOKENIZER)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ModelFileError, match=r"none\.pt"):
        open_torch_checkpoint(tmp_path / "none.pt", TOKENIZER)
