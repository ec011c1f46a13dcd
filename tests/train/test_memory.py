import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pellucid import presets
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM
from pellucid.train import memory
from pellucid.train.memory import available_bytes, estimate_memory, too_much
from pellucid.train.variant import Variant
from pellucid.training_config import OptimizerConfig

SMALL = {"vocab_size": 256, "d_model": 64, "num_layers": 2, "num_heads": 2, "context_length": 64}


def estimated(rows=4, variant=None, optimizer=None, checkpointing=False, averaged=False, device="cpu", **sizes):
    return estimate_memory(
        presets.default(**{**SMALL, **sizes}),
        optimizer or OptimizerConfig(),
        rows=rows,
        variant=variant or Variant(),
        checkpointing=checkpointing,
        averaged=averaged,
        device=device,
    )


def test_parts_add_up_and_the_larger_of_pass_and_update_counts():
    found = estimated()
    kept = found.program + found.weights + found.gradients + found.optimizer
    assert found.total == kept + max(found.activations, found.update)


def test_weights_gradients_and_what_the_optimizer_keeps_are_counted():
    found = estimated()
    assert found.weights == 4 * TransformerLM(presets.default(**SMALL)).num_parameters()
    assert found.weights == found.gradients
    assert found.weights < found.optimizer < 2 * found.weights  # Muon keeps one mean, AdamW two
    only_adamw = estimated(optimizer=OptimizerConfig(matrix_algorithm="adamw"))
    assert only_adamw.optimizer == pytest.approx(2 * only_adamw.weights, rel=0.01)  # and a step each


def test_an_average_of_the_weights_is_as_large_as_they_are():
    assert estimated(averaged=True).optimizer == estimated().optimizer + estimated().weights


def test_activations_grow_in_a_line_with_the_rows():
    one, two, eight = (estimated(rows=rows).activations for rows in (1, 2, 8))
    assert eight - one == pytest.approx(7 * (two - one), rel=0.05)


def test_attention_that_is_fused_holds_no_weights_and_checkpointing_no_blocks():
    long = {"context_length": 512, "num_layers": 4}
    whole = estimated(**long).activations
    assert estimated(variant=Variant(attention="fused"), **long).activations < 0.5 * whole
    assert estimated(variant=Variant(attention="tiled"), **long).activations < 0.9 * whole
    assert estimated(checkpointing=True, **long).activations < 0.5 * whole


def test_bfloat16_needs_less():
    narrow = Variant(precision="bfloat16")
    assert estimated(variant=narrow).activations < 0.95 * estimated().activations


def test_logits_are_told_apart():
    assert estimated(vocab_size=8192).logits == 4 * 64 * 8192 * 4
    assert estimated(vocab_size=8192).activations > 4 * 64 * 8192 * 4


def test_on_a_graphics_card_only_tensors_count():
    card = estimated(device="cuda")
    assert card.program == 0
    assert card.activations < estimated().activations


def test_estimating_takes_no_memory_and_touches_no_random_stream():
    stream = torch.get_rng_state()
    assert estimated(rows=4096, d_model=8192, d_ff=32768, vocab_size=100_000).total > 10**11
    assert torch.equal(torch.get_rng_state(), stream)


# --- what to lower


def needed(config, rows):
    return 10**9 + rows * config.context_length * config.d_model * 1000


CONFIG = ModelConfig(d_model=256, num_heads=4, context_length=512)


@pytest.mark.parametrize(
    ("available", "words"),
    [
        (10**10, ""),
        (1_600_000_000, "about 3.1 GB are needed and 1.6 GB are free: lower --micro-batch-size to 4"),
        (1_100_000_000, "lower --micro-batch-size to 1 and --model.context-length to 256"),
    ],
)
def test_the_micro_batch_is_lowered_first_and_then_the_context(available, words):
    assert too_much(needed, CONFIG, 16, available).endswith(words)


def test_what_it_says_fits_and_one_more_would_not():
    for available in range(1_140_000_000, 3_000_000_000, 77_000_000):
        said = too_much(needed, CONFIG, 16, available)
        rows = int(said.rpartition(" ")[2])
        assert needed(CONFIG, rows) <= available < needed(CONFIG, rows + 1)


def test_where_the_weights_alone_are_too_many_the_width_is_lowered():
    said = too_much(lambda config, rows: config.d_model**2 * 10**5, CONFIG, 16, 10**9)
    assert said.endswith("lower --micro-batch-size to 1 and --model.d-model to 64")


def test_where_nothing_helps_it_says_so():
    assert "nothing of this kind fits" in too_much(lambda config, rows: 10**9, CONFIG, 1, 10**8)


def test_a_real_model_is_cut_down_too():
    config = presets.default(**{**SMALL, "d_model": 192, "num_heads": 3})

    def needed(config, rows):
        return estimate_memory(config, OptimizerConfig(), rows=rows, variant=Variant()).total

    said = too_much(needed, config, 8, needed(config, 3))
    assert said.endswith("--micro-batch-size to 3")
    assert "--model.d-model to 96" in too_much(needed, config, 8, memory.PROGRAM + 10_000_000)


# --- what there is


def test_what_is_available_is_a_number_of_bytes():
    free = available_bytes(torch.device("cpu"))
    assert free is None or 10**6 < free < 10**15


def test_a_containers_limit_counts(monkeypatch):
    monkeypatch.setattr(memory, "_left_of_the_container", lambda: 123)
    assert available_bytes(torch.device("cpu")) == 123


# --- measured


SIZES = ("vocab_size", "d_model", "num_layers", "num_heads", "context_length")
SHAPES = {
    "default": ((1024, 192, 4, 3, 256), 16, Variant()),
    "long": ((256, 64, 6, 4, 512), 8, Variant(attention="fused")),
    "many ids": ((16384, 128, 2, 2, 128), 16, Variant()),
    "wide": ((256, 512, 8, 8, 128), 4, Variant()),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_within_a_quarter_of_what_a_process_takes(shape):
    sizes, rows, variant = SHAPES[shape]
    sizes = dict(zip(SIZES, sizes, strict=True))
    found = estimate_memory(presets.default(**sizes), OptimizerConfig(), rows=rows, variant=variant)
    asked = json.dumps({"model": sizes, "rows": rows, "attention": variant.attention, "steps": 5})
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("peak_memory.py"), asked], capture_output=True, check=True, text=True
    )
    assert 0.75 < found.total / int(done.stdout) < 1.25
