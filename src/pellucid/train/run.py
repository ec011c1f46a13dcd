"""A run from text to model: everything is decided once, written down, and then carried out step by step.

    sources ─▶ recipe ─▶ run folder ─▶ material, yardsticks ─▶ model ─▶ trial ─▶ plan ─▶ loop ─▶ Finished

The same request in the same folder goes on where it was stopped; another one is refused there.

In: a `Request`, or the folder of a run that was stopped.  Out: the run folder; events.  Used by: the command line.
Read next: ../generate/.
"""

import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pellucid.checkpoint import Checkpoint, RunFolder
from pellucid.errors import RunFolderError
from pellucid.train import facts
from pellucid.train.assembly import assemble, assemble_again
from pellucid.train.device import Capabilities, check_device
from pellucid.train.events import Event, Finished, Observer, Replanned, Resumed, YardsticksMeasured
from pellucid.train.loop import Loop
from pellucid.train.machine import memory_in_a_sentence, reproducible
from pellucid.train.material import Material, make_material, measure, reopen_material
from pellucid.train.progress import Progress, Wish
from pellucid.train.request import Request
from pellucid.train.sample import CLOSING_TOKENS, Sampler
from pellucid.train.trial import still_possible
from pellucid.train.variant import Variant
from pellucid.yardsticks import Score, longest_copied_of_each

Watch = Callable[[], Wish]


def train(
    request: Request, observe: Observer, *, begun: float | None = None, watch: Watch = lambda: Wish.GO_ON
) -> Finished:
    """Make a new run, or go on with the one that the same request began in the same folder.

    Args:
        request: What to do.
        observe: Hears every event.
        begun: When the person pressed Enter, on time.monotonic's clock; minutes count from here. Default: now.
        watch: Asked after every step whether the run is to go on.

    Raises:
        UserError: if the text or the settings cannot work, or the folder is not free. Nothing is left behind.
        TrainingStopped: if the numbers went bad. What was saved before is there.
    """
    begun = time.monotonic() if begun is None else begun
    check_device(request.training.device, Capabilities.of_this_machine())
    recipe = request.recipe()
    decided = request.first_facts(recipe)
    if _has_results(request.out):
        _require_same(RunFolder.open(request.out), decided)
        return resume(request.out, observe, begun=begun, watch=watch)
    with _no_empty_folders_above(request.out), memory_in_a_sentence():
        folder = RunFolder.create(request.out, decided)
        with folder.lock(discard_on_failure=True), reproducible(request.training.threads, onednn=None):
            heard = _recorded(folder, observe)
            heard(request.text_read())
            material = make_material(request.sources, recipe, folder.tokens_path, heard)
            material.tokenizer.save(folder.tokenizer_path)
            yardsticks = measure(request.sources, heard)
            made = {
                "tokenizer": facts.of_tokenizer(material.tokenizer),
                "yardsticks": asdict(yardsticks) if yardsticks else None,
            }
            folder.write_run(folder.facts | made)
            sampler = Sampler(material.tokenizer, request.training.prompt, request.training.seed)
            loop = assemble(request, recipe, folder, material, sampler, heard, begun=begun)
            return _carry_out(loop, material, sampler, yardsticks, watch, begun=begun)


def resume(path: Path, observe: Observer, *, begun: float | None = None, watch: Watch = lambda: Wish.GO_ON) -> Finished:
    """Go on with a run from its latest checkpoint, with everything as it was decided then.

    The number of steps, and with it the schedule, is the run's own: it cannot be raised.

    Args:
        path: The run folder.
        observe: Hears every event from here on.
        begun: When the person pressed Enter. Default: now.
        watch: Asked after every step whether the run is to go on.

    Raises:
        RunFolderError: if there is no run, nothing to go on with, or nothing left to do.
        TrainingStopped: as `train`.
    """
    begun = time.monotonic() if begun is None else begun
    folder = RunFolder.open(path)
    with folder.lock(), memory_in_a_sentence():
        checkpoint, heard = _latest(folder), _recorded(folder, observe)
        environment = folder.facts["environment"]
        with reproducible(environment["threads"], onednn=environment["float32_by_onednn"]):
            material = reopen_material(folder.tokens_path, folder.tokenizer_path)
            training = folder.facts["config"]["training"]
            sampler = Sampler(material.tokenizer, training["prompt"], training["seed"])
            variant = still_possible(Variant.parse(folder.facts["plan"]["variant"]))
            loop = assemble_again(folder, material, checkpoint, sampler, heard, variant=variant)
            _restore_best(folder)
            saved = [event["step"] for event in folder.metrics() if event.get("event") == "Saved"]
            folder.rewind_metrics(checkpoint)
            heard(_resumed(loop, str(variant), max(saved, default=0)))
            measured = folder.facts["yardsticks"]
            yardsticks = YardsticksMeasured(**measured) if measured else None
            return _carry_out(loop, material, sampler, yardsticks, watch, begun=begun)


def _carry_out(
    loop: Loop,
    material: Material,
    sampler: Sampler,
    yardsticks: YardsticksMeasured | None,
    watch: Watch,
    *,
    begun: float,
) -> Finished:
    """The loop, and what there is to say at its end."""
    started, first, batches = time.monotonic(), loop.progress.step, loop.train_step.batches
    state = loop(watch)
    tokens = (state.step - first) * batches.batch_size * batches.context_length
    training_seconds = max(time.monotonic() - started, 1e-9)
    sample = sampler(loop.folder.load_model(), CLOSING_TOKENS)
    copied, *shared = longest_copied_of_each([sample, *material.held_out_texts(len(sample))], material.training_text())
    plan, data = loop.folder.facts["plan"], loop.folder.facts["data"]
    finished = Finished(
        completed=state.step >= state.steps,
        cooled_from=state.cooled_from,
        step=state.step,
        steps=state.steps,
        planned_steps=state.planned_steps,
        best_step=state.best_step,
        **_judged(state, material, yardsticks),
        train=state.train,
        copied=copied.text,
        usually_shared=max((passage.text for passage in shared), key=len, default=""),
        sample=sample,
        context_length=batches.context_length,
        d_model=loop.model.config.d_model,
        epochs=batches.epochs_after(state.step),
        searched_share=material.searched_share,
        text_share=material.data.training_characters / (data["characters"] - data["held_out"]["held_out_characters"]),
        used_up=plan["used_up"],
        minutes=plan["minutes"],
        seconds=time.monotonic() - begun,
        training_seconds=training_seconds,
        tokens_per_second=tokens / training_seconds,
        skipped_steps=state.skipped,
        out=facts.as_text(loop.folder.path),
    )
    loop.observe(finished)
    return finished


def _judged(state: Progress, material: Material, yardsticks: YardsticksMeasured | None) -> dict[str, Any]:
    """What `Finished` says of the held-out text, beside the yardsticks; nothing if none is held out."""
    if yardsticks is None:
        return dict.fromkeys(("held_out", "standard_error", "held_out_even", "held_out_odd", "last_held_out"))
    lengths = tuple(piece.characters for piece in material.data.held_out)
    ngram = Score("", tuple(yardsticks.best_ngram_bits), tuple(yardsticks.held_out_characters))
    lead, lead_error = Score("", state.best_bits, lengths).lead_over(ngram)
    return {
        "held_out": state.best_held_out,
        "standard_error": state.best_standard_error,
        "held_out_even": state.best_even,
        "held_out_odd": state.best_odd,
        "last_held_out": state.last_held_out,
        "yardsticks": asdict(yardsticks),
        "ngram_lead": lead,
        "ngram_lead_error": lead_error,
    }


def _recorded(folder: RunFolder, observe: Observer) -> Observer:
    """Every event goes into metrics.jsonl before anyone else hears it, and a new plan into run.json."""

    def heard(event: Event) -> None:
        folder.append_metrics(event.as_json())
        if isinstance(event, Replanned):
            folder.write_run(folder.facts | {"replan": event.as_json()})
        observe(event)

    return heard


def _has_results(path: Path) -> bool:
    return os.path.exists(path / "run.json") and RunFolder.open(path).has_results()


def _require_same(folder: RunFolder, decided: dict[str, Any]) -> None:
    """Refuse to go on with another text or other settings; the text may go by another name."""
    name = folder.facts.get("data", {}).get("name")
    folder.require_same(decided | {"data": decided["data"] | {"name": name}})


def _latest(folder: RunFolder) -> Checkpoint:
    """The checkpoint to go on from."""
    saved, events = folder.latest_checkpoint(), folder.metrics()
    last = [event for event in events if event.get("event") in ("Saved", "Finished")]
    if saved is None and last:
        raise RunFolderError(
            f"a whole checkpoint in '{folder.path}' to go on from",
            came="none that is as it was saved: they are damaged or gone",
            remedy="put them back from a copy; the model itself is in model.safetensors, and may still be good",
        )
    if saved is None or "plan" not in folder.facts:
        raise RunFolderError(
            f"a checkpoint in '{folder.path}' to go on from",
            came="none: the run was ended before its first",
            remedy="remove the folder and begin again, or give the new run another --out",
        )
    if events and events[-1].get("event") == "Finished" and events[-1]["completed"]:
        raise RunFolderError(
            f"a run in '{folder.path}' that was stopped before its end",
            came=f"one that has done all its {events[-1]['steps']:,} steps",
            remedy="use its model, or begin a new run with another --out",
        )
    return folder.load_checkpoint(saved)


def _restore_best(folder: RunFolder) -> None:
    """Put the best checkpoint's weights in their place: the last look at a stopped run may have put others there."""
    if best := folder.best_checkpoint():
        checkpoint = folder.load_checkpoint(best)
        folder.save_model(checkpoint.model, folder.model_config(), step=str(checkpoint.step))


def _resumed(loop: Loop, variant: str, last_saved: int) -> Resumed:
    folder, progress = loop.folder, loop.progress
    there, here = folder.facts["environment"], facts.environment(loop.train_step.device)
    there, here = ({"the step": folder.facts["plan"]["variant"]} | there, {"the step": variant} | here)
    return Resumed(
        step=progress.step,
        steps=progress.steps,
        path=facts.as_text(folder.latest_checkpoint() or folder.path),
        variant=variant,
        out=facts.as_text(folder.path),
        note=facts.changed(there, here),
        steps_again=max(0, last_saved - progress.step),
    )


@contextmanager
def _no_empty_folders_above(path: Path) -> Generator[None]:
    """If the block fails, the folders above `path` that it made, and that hold nothing, are removed again."""
    missing = [parent for parent in path.absolute().parents if not os.path.exists(parent)]  # the deepest first
    try:
        yield
    except BaseException:
        for parent in missing:
            with suppress(OSError):  # something else is in it by now
                parent.rmdir()
        raise
