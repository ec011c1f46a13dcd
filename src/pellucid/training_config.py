"""How a model is trained: the optimizer's and the schedule's settings, and nothing that needs torch.

The docstring under each field is its help text on the command line.

In: field values.  Out: `OptimizerConfig`, `ScheduleConfig`,
`TrainingConfig`.  Used by: optim, train, presets, the command line.
Read next: optim/muon.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pellucid.errors import ConfigError

MatrixAlgorithm = Literal["muon", "adamw"]
UpdateScale = Literal["original", "match_rms_adamw", "none"]
NewtonSchulzPrecision = Literal["float32", "bfloat16"]
AttentionSlices = Literal["whole", "parts", "heads"]
ScheduleShape = Literal["trapezoid", "cosine", "constant"]
Precision = Literal["auto", "float32", "bfloat16"]
AttentionPath = Literal["auto", "written-out", "tiled", "fused"]
Compile = Literal["auto", "on", "off"]
MOST_THREADS = 1024  # more than any processor has cores; a hundred thousand end the process without a word
Device = Literal["auto", "cpu", "cuda", "mps"]
LORA_TARGETS = ("query", "key", "value", "output", "gate", "up", "down")
"""Maps of a block that low-rank factors may stand beside."""


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """Which algorithm moves which weights, and how far.

    Raises:
        ConfigError: if a value lies outside its range.

    Example:
        >>> OptimizerConfig(matrix_learning_rate=0.01).matrix_algorithm
        'muon'
    """

    # --- the matrices inside blocks
    matrix_algorithm: MatrixAlgorithm = "muon"
    """muon: orthogonalised momentum for the matrices inside blocks; adamw: AdamW for everything."""
    matrix_learning_rate: float = 0.02
    """Peak learning rate of the matrices inside blocks (0.02 for muon; with adamw rather 0.003)."""
    matrix_weight_decay: float | None = None
    """How much of a block's matrices is taken away per step, times the learning rate. Default: more, the more often
    the text is read."""
    momentum: float = 0.95
    """muon: how much of the running mean of gradients is kept at each step."""
    update_scale: UpdateScale = "original"
    """muon: original multiplies by sqrt(max(1, rows/columns)); match_rms_adamw by 0.2 sqrt(max(rows, columns))."""
    newton_schulz_steps: int = 5
    """muon: how many steps the orthogonalisation takes."""
    newton_schulz_precision: NewtonSchulzPrecision = "float32"
    """muon: what the orthogonalisation multiplies in; bfloat16 is faster on some processors, and coarser."""
    attention_slices: AttentionSlices = "parts"
    """muon: what of the fused query, key and value matrix is orthogonalised together: whole, its 3 parts, each head."""

    # --- everything else: AdamW
    embedding_learning_rate: float = 0.009
    """Peak learning rate of token and position embeddings."""
    head_learning_rate: float = 0.003
    """Peak learning rate of the language-model head, and of an embedding that is tied to it."""
    vector_learning_rate: float = 0.003
    """Peak learning rate of norm weights and of biases."""
    embedding_weight_decay: float | None = None
    """Decay of embeddings and of the head, times their learning rate; norms and biases are never decayed. Default:
    half of the matrices'."""
    beta1: float = 0.9
    """adamw: how much of the running mean of gradients is kept at each step."""
    beta2: float = 0.95
    """adamw: how much of the running mean of squared gradients is kept at each step."""
    adamw_epsilon: float = 1e-8
    """adamw: added to the root of the running mean square."""

    # --- both
    max_gradient_norm: float = 1.0
    """All gradients together are scaled down to this norm when they exceed it; 0 switches this off."""

    def __post_init__(self) -> None:
        rates = ("matrix_learning_rate", "embedding_learning_rate", "head_learning_rate", "vector_learning_rate")
        for name in (*rates, "matrix_weight_decay", "embedding_weight_decay", "max_gradient_norm"):
            value = getattr(self, name)
            undecided = value is None and name.endswith("_decay")
            _require(undecided or 0 <= value < float("inf"), f"{name} to be 0 or more", value, name)
        for name in ("momentum", "beta1", "beta2"):
            _require(0 <= getattr(self, name) < 1, f"{name} from 0 up to, not including, 1", getattr(self, name), name)
        _require(self.adamw_epsilon > 0, "adamw_epsilon to be above 0", self.adamw_epsilon, "adamw_epsilon")
        steps = self.newton_schulz_steps
        _require(1 <= steps <= 100, "newton_schulz_steps from 1 to 100", steps, "newton_schulz_steps")
        _require_choice("matrix_algorithm", self.matrix_algorithm, ("muon", "adamw"))
        _require_choice("update_scale", self.update_scale, ("original", "match_rms_adamw", "none"))
        _require_choice("newton_schulz_precision", self.newton_schulz_precision, ("float32", "bfloat16"))
        _require_choice("attention_slices", self.attention_slices, ("whole", "parts", "heads"))


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig:
    """How the learning rate rises and falls over a run, as a fraction of its peak.

    Raises:
        ConfigError: if a value lies outside its range.

    Example:
        >>> ScheduleConfig(warm_up_steps=0).shape
        'trapezoid'
    """

    shape: ScheduleShape = "trapezoid"
    """trapezoid: rise, stay, fall in a straight line; cosine: rise, then half a cosine; constant: rise, then stay."""
    warm_up_steps: int = 10
    """The rate rises in a straight line and reaches its peak at this step; shortened where a run has no room for it."""
    decay_fraction: float = 0.6
    """trapezoid: the last part of the run in which the rate falls."""
    final_fraction: float = 0.02
    """What of the peak rate is left at the very last step (trapezoid and cosine)."""

    def __post_init__(self) -> None:
        _require_choice("shape", self.shape, ("trapezoid", "cosine", "constant"))
        _require(self.warm_up_steps >= 0, "warm_up_steps to be 0 or more", self.warm_up_steps, "warm_up_steps")
        for name in ("decay_fraction", "final_fraction"):
            _require(0 <= getattr(self, name) <= 1, f"{name} from 0 to 1", getattr(self, name), name)


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How long and how a run trains; what is left at None, the planner chooses from the size of the text.

    Raises:
        ConfigError: if a value lies outside its range.

    Example:
        >>> TrainingConfig(steps=100).minutes is None
        True
    """

    minutes: float | None = None
    """Wall-clock time of the whole run, from Enter to the last line. Default: 5, unless steps is given."""
    steps: int | None = None
    """Optimizer steps, instead of minutes."""
    batch_size: int | None = None
    """Rows of context_length tokens in one optimizer step, over all processes."""
    tokens_per_step: int | None = None
    """The same in tokens, instead of batch_size: a multiple of context_length."""
    micro_batch_size: int | None = None
    """Rows a process computes at once; smaller needs less memory, and changes no number. Default: all of its rows."""
    mask_documents: bool = False
    """Keep the documents in a row apart: none sees another, and positions begin anew at each."""
    activation_checkpointing: bool = False
    """Compute each block a second time for its gradient instead of keeping what is inside: slower, far less memory."""
    shard: bool = False
    """Under torchrun: cut weights, gradients and optimizer state over the processes (FSDP2) instead of copying them."""
    lora: int | None = None
    """With --from: leave the weights as they are and train low-rank factors beside them, of this rank."""
    lora_alpha: float | None = None
    """What the factors' product is multiplied by, times 1 / rank. Default: twice the rank."""
    lora_targets: str = ""
    """Which maps get factors, such as query,value. Default: query, key, value, output, gate, up and down."""
    ema: float | None = None
    """Evaluate and keep the running mean of the weights, which keeps so much of itself at each step, such as 0.99."""
    evaluations: int = 10
    """How many times the held-out text is scored, a sample written and a checkpoint saved."""
    health_interval: int | None = None
    """Look at every module's weights, gradients and outputs each so many steps; 0: never. Default: at evaluations."""
    keep: int = 0
    """How many checkpoints to keep beside the latest and the best."""
    precision: Precision = "auto"
    """What products are taken in; auto tries, checks and times."""
    attention: AttentionPath = "auto"
    """written-out, tiled (the same for some queries at a time) or fused; auto goes by the context length."""
    compile: Compile = "auto"
    """Whether torch.compile makes one program of the step; auto asks whether it pays back within the run."""
    device: Device = "auto"
    """Where the run is computed; auto is cuda where there is one, else the cpu."""
    threads: int | None = None
    """CPU threads. Default: torch's, one per core."""
    seed: int = 0
    """Chooses initial weights, batches, dropout and samples."""
    prompt: str = ""
    """What every sample continues. Default: the start of a document."""

    def __post_init__(self) -> None:
        if self.minutes is not None and self.steps is not None:
            raise ConfigError(
                "minutes or steps",
                came=f"minutes={self.minutes} and steps={self.steps}",
                remedy="leave out one of them",
            )
        if self.minutes is not None:
            _require(0 < self.minutes < float("inf"), "minutes above 0, and not for ever", self.minutes, "minutes")
        if self.batch_size is not None and self.tokens_per_step is not None:
            raise ConfigError(
                "batch_size or tokens_per_step",
                came=f"batch_size={self.batch_size} and tokens_per_step={self.tokens_per_step}",
                remedy="leave out one of them",
            )
        for name in ("steps", "batch_size", "tokens_per_step", "micro_batch_size", "threads", "lora"):
            value = getattr(self, name)
            _require(value is None or value >= 1, f"{name} of 1 or more", value, name)
        threads = self.threads
        _require(threads is None or threads <= MOST_THREADS, f"at most {MOST_THREADS} threads", threads, "threads")
        _require(self.evaluations >= 1, "evaluations of 1 or more", self.evaluations, "evaluations")
        _require(self.keep >= 0, "a number of checkpoints to keep of 0 or more", self.keep, "keep")
        health = self.health_interval
        _require(health is None or health >= 0, "health_interval of 0 or more", health, "health_interval")
        alpha = self.lora_alpha
        _require(alpha is None or 0 < alpha < float("inf"), "lora_alpha above 0", alpha, "lora_alpha")
        unknown = [name for name in self.lora_targets.split(",") if self.lora_targets and name not in LORA_TARGETS]
        _require(not unknown, f"lora_targets among {', '.join(LORA_TARGETS)}", ", ".join(unknown), "lora_targets")
        if self.lora is None and (self.lora_alpha is not None or self.lora_targets):
            raise ConfigError(
                "lora, the rank of the factors, beside lora_alpha and lora_targets",
                came="none",
                remedy="add --lora 16, or leave them out",
            )
        _require(self.ema is None or 0 < self.ema < 1, "ema between 0 and 1", self.ema, "ema")
        _require(0 <= self.seed < 2**63, "a seed from 0 to 2^63 - 1", self.seed, "seed")
        _require_choice("precision", self.precision, ("auto", "float32", "bfloat16"))
        _require_choice("attention", self.attention, ("auto", "written-out", "tiled", "fused"))
        _require_choice("compile", self.compile, ("auto", "on", "off"))
        _require_choice("device", self.device, ("auto", "cpu", "cuda", "mps"))


def _require(condition: bool, expected: str, came: object, name: str) -> None:
    if not condition:
        raise ConfigError(expected, came=repr(came), remedy=f"choose another value for {name}")


def _require_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    _require(value in choices, f"{name} to be one of {' | '.join(choices)}", value, name)
