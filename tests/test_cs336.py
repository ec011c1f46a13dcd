"""The course's adapters against the course's definitions, written down here once more in plain torch, and its suite's
claims: what the assignment's own tests check is checked here too, on weights of ours."""

import inspect
import io
import json
import math
from collections import Counter

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from pellucid import cs336
from pellucid.cs336 import (
    get_adamw_cls,
    get_tokenizer,
    run_cross_entropy,
    run_embedding,
    run_get_batch,
    run_get_lr_cosine_schedule,
    run_gradient_clipping,
    run_linear,
    run_load_checkpoint,
    run_multihead_self_attention,
    run_multihead_self_attention_with_rope,
    run_rmsnorm,
    run_rope,
    run_save_checkpoint,
    run_scaled_dot_product_attention,
    run_silu,
    run_softmax,
    run_swiglu,
    run_train_bpe,
    run_transformer_block,
    run_transformer_lm,
)
from pellucid.errors import DataError, ModelFileError

BATCH, LENGTH, D_MODEL, NUM_HEADS, D_FF, NUM_LAYERS, VOCAB, CONTEXT, THETA = 4, 12, 64, 4, 128, 3, 1000, 16, 10000.0


# --- the course's definitions, naively


def reference_rope(x, positions, theta=THETA):
    """Handout, section 3.5.3: a matrix of 2 x 2 rotations for each position, on neighbouring features."""
    d = x.shape[-1]
    out = torch.empty_like(x)
    positions = positions.expand(x.shape[:-1])
    for pair in range(d // 2):
        angle = positions.double() / theta ** (2 * pair / d)
        cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        first, second = x[..., 2 * pair], x[..., 2 * pair + 1]
        out[..., 2 * pair] = cosine * first - sine * second
        out[..., 2 * pair + 1] = sine * first + cosine * second
    return out


def reference_attention(q, k, v, mask):
    scores = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(q.shape[-1])
    return F.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1) @ v


def reference_multihead(x, q, k, v, o, num_heads, positions=None):
    """One head after another."""
    length, width = x.shape[-2], q.shape[0] // num_heads
    causal = torch.ones(length, length).tril().bool()
    heads = []
    for head in range(num_heads):
        rows = slice(head * width, (head + 1) * width)
        query, key, value = x @ q[rows].T, x @ k[rows].T, x @ v[rows].T
        if positions is not None:
            query, key = reference_rope(query, positions), reference_rope(key, positions)
        heads.append(reference_attention(query, key, value, causal))
    return torch.cat(heads, dim=-1) @ o.T


def reference_rmsnorm(x, weight, eps=1e-5):
    return x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def reference_swiglu(x, w1, w2, w3):
    gate = x @ w1.T
    return (gate * torch.sigmoid(gate) * (x @ w3.T)) @ w2.T


def reference_block(x, weights):
    projections = [weights[f"attn.{name}_proj.weight"] for name in ("q", "k", "v", "output")]
    positions = torch.arange(x.shape[-2])
    x = x + reference_multihead(reference_rmsnorm(x, weights["ln1.weight"]), *projections, NUM_HEADS, positions)
    feed_forward = [weights[f"ffn.w{i}.weight"] for i in (1, 2, 3)]
    return x + reference_swiglu(reference_rmsnorm(x, weights["ln2.weight"]), *feed_forward)


def reference_lm(ids, weights):
    x = weights["token_embeddings.weight"][ids]
    for layer in range(NUM_LAYERS):
        x = reference_block(x, block_weights(weights, layer))
    return reference_rmsnorm(x, weights["ln_final.weight"]) @ weights["lm_head.weight"].T


def block_weights(weights, layer=0):
    prefix = f"layers.{layer}."
    return {name.removeprefix(prefix): weight for name, weight in weights.items() if name.startswith(prefix)}


@pytest.fixture
def weights():
    torch.manual_seed(7)
    shapes = {
        "token_embeddings.weight": (VOCAB, D_MODEL),
        "ln_final.weight": (D_MODEL,),
        "lm_head.weight": (VOCAB, D_MODEL),
    }
    for layer in range(NUM_LAYERS):
        for name in ("q", "k", "v", "output"):
            shapes[f"layers.{layer}.attn.{name}_proj.weight"] = (D_MODEL, D_MODEL)
        for name in ("ln1", "ln2"):
            shapes[f"layers.{layer}.{name}.weight"] = (D_MODEL,)
        for name, shape in (("w1", (D_FF, D_MODEL)), ("w2", (D_MODEL, D_FF)), ("w3", (D_FF, D_MODEL))):
            shapes[f"layers.{layer}.ffn.{name}.weight"] = shape
    return {name: (1 if "ln" in name else 0) + 0.15 * torch.randn(shape) for name, shape in shapes.items()}


@pytest.fixture
def x():
    return torch.randn(BATCH, LENGTH, D_MODEL, generator=torch.Generator().manual_seed(4))


@pytest.fixture
def ids():
    return torch.randint(VOCAB, (BATCH, LENGTH), generator=torch.Generator().manual_seed(6))


def projections_of(weights):
    return [weights[f"layers.0.attn.{name}_proj.weight"] for name in ("q", "k", "v", "output")]


def close(actual, expected, atol=1e-5, rtol=1e-4):
    torch.testing.assert_close(actual, expected, atol=atol, rtol=rtol)


# --- names and signatures


def test_a_star_import_brings_the_21_adapters_and_nothing_else():
    space = {}
    exec("from pellucid.cs336 import *", space)
    del space["__builtins__"]
    assert len(space) == 21
    assert all(name.startswith(("run_", "get_")) and callable(adapter) for name, adapter in space.items())


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("run_linear", "d_in d_out weights in_features"),
        ("run_embedding", "vocab_size d_model weights token_ids"),
        ("run_swiglu", "d_model d_ff w1_weight w2_weight w3_weight in_features"),
        ("run_silu", "in_features"),
        ("run_rmsnorm", "d_model eps weights in_features"),
        ("run_softmax", "in_features dim"),
        ("run_scaled_dot_product_attention", "Q K V mask"),
        ("run_rope", "d_k theta max_seq_len in_query_or_key token_positions"),
        (
            "run_multihead_self_attention",
            "d_model num_heads q_proj_weight k_proj_weight v_proj_weight o_proj_weight in_features",
        ),
        (
            "run_multihead_self_attention_with_rope",
            "d_model num_heads max_seq_len theta q_proj_weight k_proj_weight v_proj_weight o_proj_weight in_features "
            "token_positions",
        ),
        ("run_transformer_block", "d_model num_heads d_ff max_seq_len theta weights in_features"),
        (
            "run_transformer_lm",
            "vocab_size context_length d_model num_layers num_heads d_ff rope_theta weights in_indices",
        ),
        ("run_cross_entropy", "inputs targets"),
        ("run_gradient_clipping", "parameters max_l2_norm"),
        ("get_adamw_cls", ""),
        (
            "run_get_lr_cosine_schedule",
            "it max_learning_rate min_learning_rate warmup_iters cosine_cycle_iters",
        ),
        ("run_get_batch", "dataset batch_size context_length device"),
        ("run_save_checkpoint", "model optimizer iteration out"),
        ("run_load_checkpoint", "src model optimizer"),
        ("get_tokenizer", "vocab merges special_tokens"),
        ("run_train_bpe", "input_path vocab_size special_tokens kwargs"),
    ],
)
def test_adapter_signatures_are_the_courses(name, arguments):
    assert list(inspect.signature(getattr(cs336, name)).parameters) == arguments.split()


# --- nn


def test_linear_is_a_product_with_the_transposed_weight(weights, x):
    w1 = weights["layers.0.ffn.w1.weight"]
    close(run_linear(d_in=D_MODEL, d_out=D_FF, weights=w1, in_features=x), torch.einsum("oi,bti->bto", w1, x))


def test_embedding_is_row_lookup(weights, ids):
    table = weights["token_embeddings.weight"]
    assert run_embedding(VOCAB, D_MODEL, table, ids).equal(table[ids])


def test_swiglu_is_the_courses(weights, x):
    w1, w2, w3 = (weights[f"layers.0.ffn.w{i}.weight"] for i in (1, 2, 3))
    close(run_swiglu(D_MODEL, D_FF, w1, w2, w3, x), reference_swiglu(x, w1, w2, w3))


def test_silu_is_torchs(x):
    close(run_silu(x), F.silu(x), atol=1e-6)


def test_rmsnorm_is_the_courses(weights, x):
    weight = weights["layers.1.ln1.weight"]
    close(run_rmsnorm(D_MODEL, 1e-5, weight, x), reference_rmsnorm(x, weight), atol=1e-6)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax_is_torchs_and_large_numbers_do_not_overflow(x, dim):
    close(run_softmax(x, dim=dim), F.softmax(x, dim=dim), atol=1e-6)
    close(run_softmax(x + 1000, dim=dim), F.softmax(x + 1000, dim=dim), atol=1e-6)


def random_attention_inputs(*batch):
    generator = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(*batch, n, 16, generator=generator) for n in (12, 16, 16))
    mask = torch.randn(*batch, 12, 16, generator=generator) > 0.5
    return q, k, v, mask | torch.eye(12, 16).bool()


def test_scaled_dot_product_attention_is_the_courses():
    q, k, v, mask = random_attention_inputs(4)
    close(run_scaled_dot_product_attention(Q=q, K=k, V=v, mask=mask), reference_attention(q, k, v, mask), atol=1e-6)


def test_4d_scaled_dot_product_attention_is_the_courses():
    q, k, v, mask = random_attention_inputs(2, 2)
    close(run_scaled_dot_product_attention(Q=q, K=k, V=v, mask=mask), reference_attention(q, k, v, mask), atol=1e-6)


def test_scaled_dot_product_attention_without_a_mask_sees_everything():
    q, k, v, _ = random_attention_inputs(4)
    everything = torch.ones(12, 16).bool()
    close(run_scaled_dot_product_attention(q, k, v), reference_attention(q, k, v, everything), atol=1e-6)


@pytest.mark.parametrize(
    "positions",
    [torch.arange(LENGTH), torch.arange(LENGTH)[None], torch.tensor([3, 0, 11, 1, 1, 15, 2, 9, 4, 8, 7, 5])],
)
def test_rope_turns_neighbouring_features_by_their_position(x, positions):
    close(run_rope(D_MODEL, THETA, CONTEXT, x, positions), reference_rope(x, positions))


def test_rope_positions_broadcast_over_leading_axes():
    x = torch.randn(3, 2, LENGTH, 8)
    positions = torch.randint(CONTEXT, (3, 1, LENGTH))
    close(run_rope(8, THETA, CONTEXT, x, positions), reference_rope(x, positions))


def test_multihead_self_attention_is_head_after_head(weights, x):
    projections = projections_of(weights)
    actual = run_multihead_self_attention(D_MODEL, NUM_HEADS, *projections, x)
    close(actual, reference_multihead(x, *projections, NUM_HEADS))


@pytest.mark.parametrize(
    "positions",
    [None, torch.arange(LENGTH)[None], torch.tensor([3, 0, 11, 1, 1, 15, 2, 9, 4, 8, 7, 5])],
)
def test_multihead_self_attention_with_rope_is_head_after_head(weights, x, positions):
    projections = projections_of(weights)
    actual = run_multihead_self_attention_with_rope(
        D_MODEL, NUM_HEADS, CONTEXT, THETA, *projections, x, token_positions=positions
    )
    expected = torch.arange(LENGTH) if positions is None else positions
    close(actual, reference_multihead(x, *projections, NUM_HEADS, expected))


@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_multihead_self_attention_takes_any_leading_axes(weights, batch):
    projections = projections_of(weights)
    x, positions = torch.randn(*batch, LENGTH, D_MODEL), torch.randint(CONTEXT, (*batch, LENGTH))
    close(
        run_multihead_self_attention(D_MODEL, NUM_HEADS, *projections, x),
        reference_multihead(x, *projections, NUM_HEADS),
    )
    close(
        run_multihead_self_attention_with_rope(D_MODEL, NUM_HEADS, CONTEXT, THETA, *projections, x, positions),
        reference_multihead(x, *projections, NUM_HEADS, positions),
    )


def test_transformer_block_is_the_courses(weights, x):
    block = block_weights(weights)
    close(run_transformer_block(D_MODEL, NUM_HEADS, D_FF, CONTEXT, THETA, block, x), reference_block(x, block))


@pytest.mark.parametrize("length", [LENGTH, 6, 1])
def test_transformer_lm_is_the_courses(weights, ids, length):
    ids = ids[:, :length]
    actual = run_transformer_lm(VOCAB, CONTEXT, D_MODEL, NUM_LAYERS, NUM_HEADS, D_FF, THETA, weights, ids)
    close(actual, reference_lm(ids, weights), atol=1e-4, rtol=1e-3)


def test_transformer_lm_leaves_out_what_is_no_weight(weights, ids):
    more = weights | {"layers.0.attn.positional_encoder.cos": torch.ones(3)}
    run = lambda weights: run_transformer_lm(  # noqa: E731
        VOCAB, CONTEXT, D_MODEL, NUM_LAYERS, NUM_HEADS, D_FF, THETA, weights, ids
    )
    assert run(more).equal(run(weights))


def test_gradients_reach_the_weights_that_were_given(weights, x):
    block = {name: weight.requires_grad_() for name, weight in block_weights(weights).items()}
    run_transformer_block(D_MODEL, NUM_HEADS, D_FF, CONTEXT, THETA, block, x).square().sum().backward()
    assert all(weight.grad.abs().sum() > 0 for weight in block.values())


def test_no_adapter_draws_random_numbers_for_weights_it_is_given(weights, x, ids):
    before = torch.get_rng_state()
    run_linear(D_MODEL, D_FF, weights["layers.0.ffn.w1.weight"], x)
    run_transformer_lm(VOCAB, CONTEXT, D_MODEL, NUM_LAYERS, NUM_HEADS, D_FF, THETA, weights, ids)
    assert torch.get_rng_state().equal(before)


def test_whole_numbers_will_do_for_theta_and_epsilon(weights, x):
    positions = torch.arange(LENGTH)
    close(run_rope(D_MODEL, 100, CONTEXT, x, positions), reference_rope(x, positions, 100))
    close(run_rmsnorm(D_MODEL, 1, weights["ln_final.weight"], x), reference_rmsnorm(x, weights["ln_final.weight"], 1))


# --- loss and optim


@pytest.mark.parametrize("size", [1.0, 1000.0])
def test_cross_entropy_is_torchs_also_for_large_logits(size):
    logits, targets = size * torch.rand(8, 5), torch.randint(5, (8,))
    close(run_cross_entropy(logits, targets), F.cross_entropy(logits, targets), atol=1e-4)


def test_gradient_clipping_is_torchs_also_with_a_frozen_parameter():
    tensors = [torch.randn(5, 5) for _ in range(6)]
    ours, theirs = ([torch.nn.Parameter(tensor.clone()) for tensor in tensors] for _ in range(2))
    for parameters in (ours, theirs):
        parameters[-1].requires_grad_(False)
        torch.cat(parameters).sum().backward()
    torch.nn.utils.clip_grad_norm_(theirs, 1e-2)
    run_gradient_clipping(ours, 1e-2)
    assert ours[-1].grad is None
    for one, other in zip(ours[:-1], theirs[:-1], strict=True):
        close(one.grad, other.grad, atol=1e-6)


def test_adamw_is_torchs_within_the_courses_tolerance():
    results = []
    for optimizer_class in (get_adamw_cls(), torch.optim.AdamW):
        torch.manual_seed(42)
        model = torch.nn.Linear(3, 2, bias=False)
        optimizer = optimizer_class(model.parameters(), lr=1e-3, weight_decay=0.01, betas=(0.9, 0.999), eps=1e-8)
        for _ in range(1000):
            optimizer.zero_grad()
            x = torch.rand(3)
            (torch.stack([x[0] + x[1], -x[2]]) - model(x)).square().sum().backward()
            optimizer.step()
        results.append(model.weight.detach())
    close(*results, atol=1e-4)


def test_get_lr_cosine_schedule_begins_at_zero_and_holds_the_minimum():
    rates = [run_get_lr_cosine_schedule(it, 1, 0.1, 7, 21) for it in range(25)]
    assert rates[0] == 0
    assert rates[1:8] == pytest.approx([i / 7 for i in range(1, 8)])
    assert rates[14] == pytest.approx(0.55)
    assert rates[8] == pytest.approx(0.1 + 0.45 * (1 + math.cos(math.pi / 14)))
    assert rates[21:] == [0.1] * 4


@pytest.mark.parametrize(("warm_up", "cycle"), [(0, 0), (0, 5), (5, 5), (7, 5)])
def test_get_lr_cosine_schedule_survives_empty_phases(warm_up, cycle):
    rates = [run_get_lr_cosine_schedule(it, 1.0, 0.1, warm_up, cycle) for it in range(10)]
    assert all(0 <= rate <= 1 for rate in rates)
    assert rates[-1] == 0.1


# --- data and checkpoints


@pytest.mark.parametrize("dtype", [np.int64, np.uint16])
def test_get_batch_gives_rows_and_the_same_rows_one_token_on(dtype):
    inputs, targets = run_get_batch(np.arange(100).astype(dtype), batch_size=32, context_length=7, device="cpu")
    assert inputs.shape == targets.shape == (32, 7)
    assert inputs.dtype == targets.dtype == torch.int64
    assert (inputs + 1).equal(targets)


def test_get_batch_draws_every_start_about_equally_often():
    starts = Counter()
    for _ in range(300):
        inputs, _ = run_get_batch(np.arange(100), batch_size=32, context_length=7, device="cpu")
        starts.update(inputs[:, 0].tolist())
    expected = 300 * 32 / 93
    assert set(starts) == set(range(93))
    assert all(abs(count - expected) < 6 * math.sqrt(expected) for count in starts.values())


def test_get_batch_draws_from_the_global_stream():
    draws = []
    for _ in range(2):
        torch.manual_seed(3)
        draws.append(run_get_batch(np.arange(100), 4, 5, "cpu")[0])
    assert draws[0].equal(draws[1])
    assert not run_get_batch(np.arange(100), 4, 5, "cpu")[0].equal(draws[1])


def test_get_batch_reads_a_memory_mapped_file(tmp_path):
    np.save(tmp_path / "tokens.npy", np.arange(50, dtype=np.uint16))
    inputs, targets = run_get_batch(np.load(tmp_path / "tokens.npy", mmap_mode="r"), 4, 5, "cpu")
    assert (inputs + 1).equal(targets)


def test_get_batch_lets_a_wrong_device_raise_torchs_error():
    with pytest.raises((RuntimeError, AssertionError), match="CUDA"):
        run_get_batch(np.arange(100), 4, 5, "cuda:99")


def test_get_batch_uses_a_text_of_context_plus_one_and_names_both_numbers_below():
    assert run_get_batch(np.arange(8), 2, 7, "cpu")[0].tolist() == [list(range(7))] * 2
    with pytest.raises(DataError, match=r"8 tokens.*got 7"):
        run_get_batch(np.arange(7), 2, 7, "cpu")


def trained(optimizer_class, seed=0, steps=3):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.BatchNorm1d(5), torch.nn.Linear(5, 2))
    optimizer = optimizer_class(model.parameters(), lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4, 6)).square().sum().backward()
        optimizer.step()
    return model, optimizer


@pytest.mark.parametrize("optimizer_class", [get_adamw_cls(), torch.optim.AdamW, torch.optim.SGD])
@pytest.mark.parametrize("place", ["path", "text path", "open file", "memory"])
def test_checkpoints_of_any_model_and_optimizer_go_to_paths_and_open_files(tmp_path, optimizer_class, place):
    model, optimizer = trained(optimizer_class)
    out = {"path": tmp_path / "c.pt", "text path": str(tmp_path / "c.pt"), "memory": io.BytesIO()}
    if place == "open file":
        with open(tmp_path / "c.pt", "wb") as file:
            run_save_checkpoint(model, optimizer, 3, file)
    else:
        run_save_checkpoint(model, optimizer, iteration=3, out=out[place])

    other, other_optimizer = trained(optimizer_class, seed=1, steps=1)
    if place == "open file":
        with open(tmp_path / "c.pt", "rb") as file:
            assert run_load_checkpoint(file, other, other_optimizer) == 3
    else:
        if place == "memory":
            out[place].seek(0)
        assert run_load_checkpoint(src=out[place], model=other, optimizer=other_optimizer) == 3
    for name, value in model.state_dict().items():
        assert value.equal(other.state_dict()[name])
    x = torch.randn(4, 6)
    for one, step in ((model, optimizer), (other, other_optimizer)):
        one.zero_grad()
        one(x).square().sum().backward()
        step.step()
    assert all(a.equal(b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


class Mischief:
    """What a pickle may hold: something to call."""

    def __reduce__(self):
        return (print, ("this must not be printed",))


def test_a_checkpoint_that_holds_code_is_refused_unread(tmp_path, capsys):
    torch.save({"model": Mischief(), "optimizer": {}, "iteration": 1}, tmp_path / "c.pt")
    model, optimizer = trained(torch.optim.SGD)
    with pytest.raises(ModelFileError, match="code"):
        run_load_checkpoint(tmp_path / "c.pt", model, optimizer)
    assert "printed" not in capsys.readouterr().out


# --- text


CORPUS = "low low low low low\nlower lower widest widest widest\nnewest newest newest newest newest newest<|end|>low"


def test_train_bpe_learns_the_handouts_example(tmp_path):
    (tmp_path / "corpus.txt").write_text(CORPUS, encoding="utf-8")
    vocab, merges = run_train_bpe(input_path=tmp_path / "corpus.txt", vocab_size=263, special_tokens=["<|end|>"])
    assert merges == [(b"s", b"t"), (b"e", b"st"), (b"o", b"w"), (b"l", b"ow"), (b"w", b"est"), (b"n", b"e")]
    assert len(vocab) == 263
    assert b"<|end|>" in vocab.values()


def test_get_tokenizer_takes_the_longest_special_token_first(tmp_path):
    (tmp_path / "corpus.txt").write_text(CORPUS, encoding="utf-8")
    vocab, merges = run_train_bpe(tmp_path / "corpus.txt", 270, ["<|end|>"])
    tokenizer = get_tokenizer(vocab, merges, ["<|end|>", "<|end|><|end|>"])
    ids = tokenizer.encode("lowest <|end|><|end|> 🙃<|end|>")
    pieces = [tokenizer.decode([i]) for i in ids]
    assert pieces.count("<|end|>") == pieces.count("<|end|><|end|>") == 1
    assert tokenizer.decode(ids) == "lowest <|end|><|end|> 🙃<|end|>"


def test_get_tokenizer_reads_a_stream_lazily(tmp_path):
    (tmp_path / "corpus.txt").write_text(CORPUS, encoding="utf-8")
    vocab, merges = run_train_bpe(tmp_path / "corpus.txt", 270, ["<|end|>"])
    tokenizer = get_tokenizer(vocab, merges)
    read = []

    def lines():
        for line in ["low ", "newest ", "widest "] * 1000:
            read.append(line)
            yield line

    stream = tokenizer.encode_iterable(lines())
    next(stream)
    assert len(read) < 10
    assert tokenizer.decode(stream).startswith("newest" if len(read) == 1 else "")


def test_vocabularies_of_the_course_survive_json(tmp_path):
    (tmp_path / "corpus.txt").write_text(CORPUS, encoding="utf-8")
    vocab, _ = run_train_bpe(tmp_path / "corpus.txt", 263, [])
    stored = json.loads(json.dumps({i: token.hex() for i, token in vocab.items()}))
    assert {int(i): bytes.fromhex(token) for i, token in stored.items()} == vocab
