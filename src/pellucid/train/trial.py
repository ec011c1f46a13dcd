"""Choose the fastest way to compute the step that is right and that pays back within the run.

    eager float32 ──reference──▶ [compiled, best number type first] ──▶ [eager bfloat16] ──▶ fastest admitted one

Compiling costs seconds before it saves any, so it is tried only where the run is long enough, and the line that says
so comes before it begins. Nothing else runs while a variant is timed.

In: a model, a way to take steps, the time left.  Out: a `Variant` and its seconds per step.  Used by: run.
Read next: evaluation.py.
"""

import itertools
import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial

from pellucid.errors import ConfigError
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM
from pellucid.train.ceiling import product_speedup, seconds
from pellucid.train.device import Capabilities, check_precision, training_precisions
from pellucid.train.events import CompileBegun, Observer, VariantTried
from pellucid.train.probe import (
    Batch,
    Reference,
    difference,
    loss_and_gradients,
    probing,
    reference,
)
from pellucid.train.step import TrainStep
from pellucid.train.tiles import TILE
from pellucid.train.variant import LossFunction, Variant, loss_function, use_attention
from pellucid.training_config import TrainingConfig

COMPILE_SECONDS = 30.0  # cold, 4 layers; 12 to 40 were measured on two cores (docs/log.md)
COMPILE_GAIN = 1.4  # what compiling has brought at least, of the eager step's time
MOST_GAIN = 1.8  # what compiling has brought at most in one number type: 1.73 times at 4 x 128 (docs/log.md)
WORTHWHILE_PRODUCTS = 1.3  # bfloat16 products must be this much faster, or conversions eat the gain
FUSED_FROM = 1024  # positions from which the weights' memory, rows x heads x positions^2 / 2, costs more than it saves
NO_COMPILER = "this machine has no C++ compiler, such as g++"
TIMED_STEPS, TIMED_SECONDS = 2, 0.7
NEAR = 1.25  # times the fastest: on a shared machine less may be chance
TRIAL_RATE = 0.01  # of the peak: a trial has no warm-up, and shall move the weights, not throw them


@dataclass
class _Tried:
    variant: Variant
    loss: LossFunction
    step_seconds: float


def choose_variant(
    model: TransformerLM,
    batch: Batch,
    config: TrainingConfig,
    time_step: Callable[[LossFunction], float],
    seconds_left: float,
    observe: Observer,
    most_steps: float = math.inf,
    *,
    has_learned: bool = False,
) -> tuple[Variant, LossFunction, float]:
    """Try, check and time variants.

    Args:
        model: Is left as it was.
        batch: What is compared on.
        config: May fix precision, attention or compiling.
        time_step: Seconds per optimizer step with a loss function.
        seconds_left: Of the run; infinite when it is counted in steps.
        observe: Hears what was tried.
        most_steps: After how many steps the run ends, whatever time is left.
        has_learned: Whether the model's weights are not those of a fresh run.

    Raises:
        ConfigError: if no way to compute the step is right, not even the plain one.
    """
    begun = time.monotonic()
    attention = config.attention if config.attention != "auto" else attention_path(batch[0].shape[1])
    with probing(model, has_learned=has_learned):
        expected = reference(model, batch)
    tried: list[_Tried] = []

    def attempt(precision: str, compiled: bool) -> float:
        variant = Variant(precision=precision, attention=attention, compiled=compiled)
        probe = partial(probing, model, has_learned=has_learned)
        found, spent = _attempt(model, batch, variant, (expected, probe), time_step, observe)
        if found:
            tried.append(found)
        return spent

    precisions = _precisions(config.precision, batch[0].device.type, model.config.d_model, batch[0].numel())
    attempt(precisions[-1], False)
    if not tried and "float32" not in precisions:
        attempt("float32", False)  # what was asked for is not right here, and has been told
    if not tried:
        raise ConfigError(
            "a model whose loss and gradients are finite",
            came="others, even computed the plain way",
            remedy="choose other --model settings, or lower learning rates",
        )
    left = min(seconds_left - (time.monotonic() - begun), most_steps * tried[0].step_seconds)
    if config.compile == "on" or (config.compile == "auto" and left > pays_after()):
        for precision in _to_compile(precisions, attention, batch[0].device.type, observe):
            spent = attempt(precision, True)
            fastest = min((one.step_seconds for one in tried if one.variant.compiled), default=math.inf)
            # another program cannot be faster, or a cold compiler takes longer than it could save
            if tried[0].step_seconds / fastest > MOST_GAIN or (fastest < math.inf and spent > COMPILE_SECONDS / 3):
                break
    compiled = {one.variant.precision for one in tried if one.variant.compiled}
    for precision in precisions[:-1]:
        if precision not in compiled:  # eager, the same is slower
            attempt(precision, False)
    if config.compile == "on":
        tried = [one for one in tried if one.variant.compiled] or tried
    chosen = _fastest(tried, time_step)
    use_attention(model, chosen.variant)
    return chosen.variant, chosen.loss, chosen.step_seconds


def _fastest(tried: list[_Tried], time_step: Callable[[LossFunction], float]) -> _Tried:
    """The fastest; those near it are timed once more, in the opposite order, so that no busy moment decides."""
    limit = NEAR * min(one.step_seconds for one in tried)
    near = [one for one in tried if one.step_seconds <= limit]
    if len(near) > 1:
        for one in reversed(near):
            one.step_seconds = min(one.step_seconds, time_step(one.loss))
    return min(near, key=lambda one: one.step_seconds)


def attention_path(context_length: int) -> str:
    """How attention is best computed at this length.

    Example:
        >>> [attention_path(length) for length in (64, 256, 4096)]
        ['written-out', 'tiled', 'fused']
    """
    if context_length >= FUSED_FROM:
        return "fused"
    return "tiled" if context_length > TILE else "written-out"


def still_possible(variant: Variant) -> Variant:
    """The variant that a run has used so far, or the same step computed eagerly where nothing can compile it now."""
    here = Capabilities.of_this_machine()
    return replace(variant, compiled=variant.compiled and (here.cuda or here.compiler is not None))


def pays_after() -> float:
    """The run length, in seconds, from which compiling earns more than it costs."""
    return COMPILE_SECONDS / (1 - 1 / COMPILE_GAIN)


def _to_compile(precisions: list[str], attention: str, device: str, observe: Observer) -> list[str]:
    """The number types to compile the step in, none where there is no compiler: torch would search for it for seconds.

    Either way one line comes first.
    """
    if device == "cpu" and Capabilities.of_this_machine().compiler is None:
        variant = Variant(precision=precisions[0], attention=attention, compiled=True)
        observe(VariantTried(variant=str(variant), admitted=False, reason=NO_COMPILER))
        return []
    observe(CompileBegun(expected_seconds=COMPILE_SECONDS, pays_after_seconds=pays_after()))
    return precisions


def _precisions(asked: str, device: str, d_model: int, rows: int) -> list[str]:
    """The number types to try, the likely best first.

    Raises:
        ConfigError: for one that was asked for and that the device cannot train in.
    """
    capabilities = Capabilities.of_this_machine()
    if asked != "auto":
        return [check_precision(device, asked, capabilities)]
    if device == "cpu" and product_speedup(rows, d_model, 3 * d_model) < WORTHWHILE_PRODUCTS:
        return ["float32"]
    return list(training_precisions(device, capabilities))


def _attempt(
    model: TransformerLM,
    batch: Batch,
    variant: Variant,
    known: tuple[Reference, Callable[[], AbstractContextManager[TransformerLM]]],
    time_step: Callable[[LossFunction], float],
    observe: Observer,
) -> tuple[_Tried | None, float]:
    """Check one variant and time it; returns it if it is right, and the seconds its first use took."""
    loss, (expected, probe) = loss_function(model, variant), known
    begun, step_seconds = time.monotonic(), 0.0
    spent = 0.0
    try:
        with probe():
            wrong = difference(loss_and_gradients(model, loss, batch), expected, variant.precision)
        spent = time.monotonic() - begun
        if not wrong:
            step_seconds = time_step(loss)
    except Exception as error:  # whatever a compiler raises, the run goes on without it
        if not variant.compiled:
            raise
        wrong = first_line(error)
    if step_seconds == math.inf:
        wrong = "the loss or a gradient of a step is not finite"
    if wrong:
        observe(VariantTried(variant=str(variant), admitted=False, reason=wrong, compile_seconds=spent))
        return None, spent
    observe(
        VariantTried(
            variant=str(variant),
            admitted=True,
            reason="",
            step_seconds=step_seconds,
            compile_seconds=spent if variant.compiled else 0.0,
        )
    )
    return _Tried(variant, loss, step_seconds), spent


def first_line(error: Exception) -> str:
    """Why a variant could not be compiled."""
    text = str(error).strip() or type(error).__name__
    return f"it could not be compiled ({text.splitlines()[0][:100]})"  # a compiler's first line says enough


def sharded_variant(config: TrainingConfig, device: str, model: ModelConfig) -> Variant:
    """The way to compute the step of a model that is cut over ranks: it is not tried out, as no rank could alone.

    Blocks are compiled on CUDA, elsewhere if that is asked for.
    """
    precision = config.precision if config.precision != "auto" else "bfloat16" if device == "cuda" else "float32"
    attention = attention_path(model.context_length) if config.attention == "auto" else config.attention
    compiled = config.compile == "on" or (config.compile == "auto" and device == "cuda")
    return Variant(precision=precision, attention=attention, compiled=compiled)


def time_some_steps(train_step: TrainStep) -> float:
    """Seconds per step, for ranks that must all take the same number of them."""
    train_step(1, TRIAL_RATE)
    begun = time.monotonic()
    for step in range(2, 2 + TIMED_STEPS):
        train_step(step, TRIAL_RATE)
    return (time.monotonic() - begun) / TIMED_STEPS


def time_steps(train_step: TrainStep) -> float:
    """Seconds per optimizer step, update included; infinite if one of them had a loss or gradient that is not finite.

    The caller puts the weights back afterwards. This sees what the comparison, made without dropout, has not seen.
    """
    train_step.model.train()
    steps, skipped = itertools.count(1), []

    def step() -> None:
        skipped.append(train_step(next(steps), TRIAL_RATE).skipped)

    step()  # the first one makes the optimizer's state
    step_seconds = seconds(step, at_least=TIMED_STEPS, budget=TIMED_SECONDS)
    return math.inf if any(skipped) else step_seconds
