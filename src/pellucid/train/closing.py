"""The loop, and what there is to say at its end: figures beside the yardsticks, a sample, what is copied in it.

In: a loop and the material.  Out: `Finished`.  Used by: run.  Read next: run.py.
"""

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from pellucid.train import facts
from pellucid.train.events import Finished, YardsticksMeasured
from pellucid.train.loop import Loop
from pellucid.train.machine import peak_memory_bytes
from pellucid.train.material import Material
from pellucid.train.progress import Progress, Wish
from pellucid.train.sample import CLOSING_TOKENS, sampler_of
from pellucid.yardsticks import Score, longest_copied_of_each

Watch = Callable[[], Wish]


def carry_out(
    loop: Loop,
    material: Material,
    yardsticks: YardsticksMeasured | None,
    watch: Watch,
    *,
    begun: float,
) -> Finished:
    """The loop, and what there is to say at its end."""
    started, first, batches = time.monotonic(), loop.progress.step, loop.train_step.batches
    folder = loop.keeper.folder
    state = loop(watch)
    tokens = (state.step - first) * batches.batch_size * batches.context_length
    training_seconds = max(time.monotonic() - started, 1e-9)
    sampler = sampler_of(folder, material)
    sample = sampler(folder.load_model(), CLOSING_TOKENS)
    copied, *shared = longest_copied_of_each([sample, *material.held_out_texts(len(sample))], material.training_text())
    plan, data = folder.facts["plan"], folder.facts["data"]
    characters = data["characters"] - data["held_out"]["held_out_characters"]
    finished = Finished(
        completed=state.step >= state.steps,
        cooled_from=state.cooled_from,
        step=state.step,
        steps=state.steps,
        planned_steps=state.planned_steps,
        best_step=state.best_step,
        **_judged(state, material, yardsticks),
        **_beside_before(state, folder.facts.get("before")),
        train=state.train,
        copied=copied.text,
        usually_shared=max((passage.text for passage in shared), key=len, default=""),
        sample=sample,
        context_length=batches.context_length,
        d_model=plan["model"]["d_model"],
        epochs=batches.epochs_after(state.step),
        searched_share=material.searched_share,
        text_share=1.0 if material.data.are_chats else material.data.training_characters / characters,
        question=sampler.prompt if sampler.question else "",
        used_up=plan["used_up"],
        minutes=plan["minutes"],
        seconds=time.monotonic() - begun,
        training_seconds=training_seconds,
        tokens_per_second=tokens / training_seconds,
        skipped_steps=state.skipped,
        peak_memory_bytes=peak_memory_bytes(loop.train_step.device),
        holds_text=material.data.train.path.absolute().is_relative_to(folder.path.absolute()),
        out=facts.as_text(folder.path),
    )
    loop.observe(finished)
    return finished


def _judged(state: Progress, material: Material, yardsticks: YardsticksMeasured | None) -> dict[str, Any]:
    """What `Finished` says of the held-out text, beside the yardsticks; nothing if none is held out."""
    data = material.data
    if not data.held_out:
        return dict.fromkeys(("held_out", "standard_error", "held_out_even", "held_out_odd", "last_held_out"))
    figures = {
        "held_out": state.best_held_out,
        "standard_error": state.best_standard_error,
        "held_out_even": state.best_even,
        "held_out_odd": state.best_odd,
        "last_held_out": state.last_held_out,
    }
    if data.held_out_chats is not None or yardsticks is None:
        tokens = data.held_out_chats.num_scored if data.held_out_chats else None
        return figures | {"held_out_tokens": tokens, "held_out_characters": data.held_out_characters}
    lengths = tuple(piece.characters for piece in data.held_out)
    ngram = Score("", tuple(yardsticks.best_ngram_bits), tuple(yardsticks.held_out_characters))
    lead, lead_error = Score("", state.best_bits, lengths).lead_over(ngram)
    return figures | {
        "yardsticks": asdict(yardsticks),
        "ngram_lead": lead,
        "ngram_lead_error": lead_error,
    }


def _beside_before(state: Progress, before: dict[str, Any] | None) -> dict[str, Any]:
    """What `Finished` says beside what the model that the run began with made of the same passages."""
    if before is None or not state.best_bits:
        return {}
    lengths = tuple(before["passage_characters"])
    was = Score("", tuple(before["passage_bits"]), lengths)
    gain, gain_error = Score("", state.best_bits, lengths).lead_over(was)
    return {"before": was.bits_per_character, "gain": gain, "gain_error": gain_error}
