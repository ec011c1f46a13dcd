"""Small GGUF files of every family, with random weights, written by the `gguf` library for tests."""

import gguf
import numpy as np

from pellucid.convert.gguf_writing import add_entry

TOKENS = ["<|endoftext|>", *(chr(code) for code in range(33, 121)), "ab"]  # 90 of them


def write_gguf(path, architecture, entries, tensors, *, kinds=None, vocabulary=True):
    """A file of some entries (numbers, texts, lists) and tensors (float32, or stored as `kinds` says)."""
    writer = gguf.GGUFWriter(path, architecture)
    if vocabulary:
        entries = {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "gpt-2",
            "tokenizer.ggml.tokens": TOKENS,
            "tokenizer.ggml.token_type": [3] + [1] * (len(TOKENS) - 1),
            "tokenizer.ggml.merges": ["a b"],
            **entries,
        }
    for key, value in entries.items():
        add_entry(writer, key, value)
    for name, tensor in tensors.items():
        kind = gguf.GGMLQuantizationType[(kinds or {}).get(name, "F32")]
        if kind.name == "F32":
            writer.add_tensor(name, tensor)
        else:
            writer.add_tensor(name, gguf.quants.quantize(tensor, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def sizes(architecture, **more):
    """The entries of a small model; `more` are keys with __ for a dot, and None to leave one out."""
    entries = {
        "context_length": 700,
        "embedding_length": 64,
        "block_count": 2,
        "feed_forward_length": 96,
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
        "attention.layer_norm_rms_epsilon": 1e-5,
        **{key.replace("__", "."): value for key, value in more.items()},
    }
    return {f"{architecture}.{key}": value for key, value in entries.items() if value is not None}


def random_tensors(shapes, seed=0):
    """Weights of std 0.1, norms about 1."""
    random = np.random.default_rng(seed)
    return {
        name: (random.normal(size=shape) * 0.1 + ("norm" in name and name.endswith("weight"))).astype(np.float32)
        for name, shape in shapes.items()
    }


def shapes(*, d_model=64, heads=4, kv_heads=2, d_head=16, d_ff=96, layers=2, vocab=90, extra=(), left_out=()):
    """The tensors of a Llama; `extra` are more of every layer, name and shape."""
    each = {
        "attn_norm.weight": (d_model,),
        "attn_q.weight": (heads * d_head, d_model),
        "attn_k.weight": (kv_heads * d_head, d_model),
        "attn_v.weight": (kv_heads * d_head, d_model),
        "attn_output.weight": (d_model, heads * d_head),
        "ffn_norm.weight": (d_model,),
        "ffn_gate.weight": (d_ff, d_model),
        "ffn_up.weight": (d_ff, d_model),
        "ffn_down.weight": (d_model, d_ff),
        **dict(extra),
    }
    all_layers = {f"blk.{i}.{name}": shape for i in range(layers) for name, shape in each.items()}
    whole = {"token_embd.weight": (vocab, d_model), **all_layers, "output_norm.weight": (d_model,)}
    whole["output.weight"] = (vocab, d_model)
    return {name: shape for name, shape in whole.items() if name not in left_out}


def head_norms(width):
    return [("attn_q_norm.weight", (width,)), ("attn_k_norm.weight", (width,))]


def gpt2_shapes(d_model=64, d_ff=256, layers=2, vocab=90, context=700):
    """The tensors of a GPT-2."""
    each = {"attn_qkv": (3 * d_model, d_model), "attn_output": (d_model, d_model)}
    each |= {"ffn_up": (d_ff, d_model), "ffn_down": (d_model, d_ff), "attn_norm": (d_model,), "ffn_norm": (d_model,)}
    layers = {
        f"blk.{i}.{name}.{kind}": shape if kind == "weight" else shape[:1]
        for i in range(layers)
        for name, shape in each.items()
        for kind in ("weight", "bias")
    }
    ends = {"output_norm.weight": (d_model,), "output_norm.bias": (d_model,)}
    return {"token_embd.weight": (vocab, d_model), "position_embd.weight": (context, d_model), **layers, **ends}


def write_llama(path, *, entries=None, kinds=None, more_tensors=None, **choices):
    """A small Llama, with other entries, types or tensors; None leaves an entry out."""
    entries = {**sizes("llama"), **(entries or {})}
    tensors = {**random_tensors(shapes(**choices)), **(more_tensors or {})}
    kept = {key: value for key, value in entries.items() if value is not None}
    return write_gguf(path, "llama", kept, tensors, kinds=kinds)
