"""A run from text to model: everything is decided once, written down, and then carried out step by step.

    sources ─▶ recipe ─▶ run folder ─▶ material, yardsticks ─▶ model ─▶ trial ─▶ plan ─▶ loop ─▶ Finished

The same request in the same folder goes on where it was stopped; another one is refused there.

In: a `Request`, or the folder of a run that was stopped.  Out: the run folder; events.  Used by: the command line.
Read next: ../generate/.
"""

import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from pellucid.checkpoint import Checkpoint, RunFolder
from pellucid.errors import RunFolderError
from pellucid.parallel import ALONE, Ranks
from pellucid.train import facts
from pellucid.train.assembly import assemble, assemble_again, extend, parts_of
from pellucid.train.closing import Watch, carry_out
from pellucid.train.device import Capabilities, check_device
from pellucid.train.events import Event, Extended, Finished, Observer, Replanned, Resumed, YardsticksMeasured
from pellucid.train.loop import Loop
from pellucid.train.machine import memory_in_a_sentence, reproducible
from pellucid.train.material import Material, make_material, measure, reopen_material
from pellucid.train.progress import Progress, Wish
from pellucid.train.recipe import Recipe
from pellucid.train.request import Request
from pellucid.train.trial import still_possible
from pellucid.train.variant import Variant
from pellucid.train.watcher import Watcher, watched
from pellucid.training_config import TrainingConfig

LENGTHS = ("steps", "minutes")


def train(
    request: Request,
    observe: Observer,
    *,
    begun: float | None = None,
    watch: Watch = lambda: Wish.GO_ON,
    ranks: Ranks = ALONE,
) -> Finished:
    """Make a new run, or go on with the one that the same request began in the same folder.

    Args:
        request: What to do.
        observe: Hears every event.
        begun: When the person pressed Enter, on time.monotonic's clock; minutes count from here. Default: now.
        watch: Asked after every step whether the run is to go on.
        ranks: This is the first of them; the others `join`.

    Raises:
        UserError: if the text or the settings cannot work, or the folder is not free. Nothing is left behind.
        TrainingStopped: if the numbers went bad. What was saved before is there.
    """
    begun = time.monotonic() if begun is None else begun
    training = request.training
    check_device(training.device, Capabilities.of_this_machine())
    recipe = request.recipe()
    decided = request.first_facts(recipe)
    if _has_results(request.out):
        _require_same(RunFolder.open(request.out), decided)
        return resume(request.out, observe, begun=begun, watch=watch, ranks=ranks)
    with _no_empty_folders_above(request.out), memory_in_a_sentence():
        folder = RunFolder.create(request.out, decided)
        with folder.lock(discard_on_failure=True), reproducible(training.threads, onednn=None):
            heard = watched(_recorded(folder, observe), Watcher())
            heard(request.text_read())
            if request.start:
                heard(request.start.opened())
            material = make_material(request.sources, recipe, folder.tokens_path, heard, request.start)
            material.tokenizer.save(folder.tokenizer_path)
            if request.start and request.start.chat_template:
                folder.chat_template_path.write_text(request.start.chat_template, encoding="utf-8", newline="")
            yardsticks = measure(request.sources, heard)
            made = {
                "tokenizer": facts.of_tokenizer(material.tokenizer),
                "yardsticks": asdict(yardsticks) if yardsticks else None,
                "asked": material.asked,
                "end_ids": sorted({*folder.facts.get("end_ids", ()), *material.end_ids}),
            }
            folder.write_run(folder.facts | made)
            folder.settle()
            onednn = torch.get_float32_matmul_precision() == "medium"
            ranks.from_first(Order(path=str(folder.path), threads=training.threads, onednn=onednn).__dict__)
            parts = parts_of(folder, material, heard, ranks, start=request.start)
            loop = assemble(parts, recipe, begun=begun)
            return carry_out(loop, material, yardsticks, watch, begun=begun)


def resume(
    path: Path,
    observe: Observer,
    *,
    begun: float | None = None,
    watch: Watch = lambda: Wish.GO_ON,
    ranks: Ranks = ALONE,
    steps: int | None = None,
    minutes: float | None = None,
) -> Finished:
    """Go on with a run from its latest checkpoint, with everything as it was decided then.

    Args:
        path: The run folder.
        observe: Hears every event from here on.
        begun: When the person pressed Enter. Default: now.
        watch: Asked after every step whether the run is to go on.
        ranks: This is the first of them; there may be more or fewer than before.
        steps: Another number of steps in all; the schedule from here on is that of a run of so many.
        minutes: The same, as minutes from here on.

    Raises:
        RunFolderError: if there is no run, nothing to go on with, or nothing left to do.
        TrainingStopped: as `train`.
    """
    begun = time.monotonic() if begun is None else begun
    folder = RunFolder.open(path)
    with folder.lock(), memory_in_a_sentence():
        watcher, saved = Watcher(), _latest(folder)
        heard = watched(_recorded(folder, observe), watcher)
        checkpoint = folder.load_checkpoint(saved)
        steps = _new_steps(folder, checkpoint, steps, minutes)
        environment = folder.facts["environment"]
        order = Order(
            path=str(folder.path),
            threads=environment["threads"],
            onednn=environment["float32_by_onednn"],
            checkpoint=saved.name,
            steps=steps,
        )
        ranks.from_first(order.__dict__)
        with reproducible(order.threads, onednn=order.onednn):
            material = reopen_material(folder.tokens_path, folder.tokenizer_path)
            loop, variant, extension = _again(folder, material, checkpoint, heard, ranks, steps)
            loop.keeper.best_again()
            last = [event["step"] for event in folder.metrics() if event.get("event") == "Saved"]
            folder.rewind_metrics(checkpoint)
            watcher.replay(folder.metrics())
            heard(_resumed(loop, str(variant), max(last, default=0)))
            if extension:
                folder.write_run(folder.facts | {"extended_to": extension.new_steps})
                heard(extension)
            measured = folder.facts["yardsticks"]
            yardsticks = YardsticksMeasured(**measured) if measured else None
            return carry_out(loop, material, yardsticks, watch, begun=begun)


def join(observe: Observer, *, ranks: Ranks, watch: Watch = lambda: Wish.GO_ON) -> Progress:
    """Take part in the run that the first rank makes or goes on with, in a folder that all can read.

    Args:
        observe: Hears of this rank's steps.
        ranks: This is one of them, not the first.
        watch: As in `train`; what any rank wishes holds for all.

    Returns:
        Where the run stands at its end.
    """
    order = Order(**ranks.from_first())
    folder = RunFolder.open(order.path)
    with memory_in_a_sentence(), reproducible(order.threads, onednn=order.onednn):
        material = reopen_material(folder.tokens_path, folder.tokenizer_path)
        if order.checkpoint is None:
            recipe = Recipe.of_json(folder.facts["config"])
            return assemble(parts_of(folder, material, observe, ranks), recipe, begun=time.monotonic())(watch)
        checkpoint = folder.load_checkpoint(folder.checkpoints_path / order.checkpoint)
        loop, _, _ = _again(folder, material, checkpoint, observe, ranks, order.steps)
        return loop(watch)


@dataclass(frozen=True, kw_only=True)
class Order:
    """What the first rank tells the others before they begin; the rest stands in the run folder."""

    path: str
    threads: int | None
    onednn: bool
    checkpoint: str | None = None
    """The folder to go on from, if the run is not new."""
    steps: int | None = None
    """The new last step, if it is moved."""


def _again(
    folder: RunFolder,
    material: Material,
    checkpoint: Checkpoint,
    observe: Observer,
    ranks: Ranks,
    steps: int | None,
) -> tuple[Loop, Variant, Extended | None]:
    """A run as it was, its last step moved if it is to be."""
    variant = still_possible(Variant.parse(folder.facts["plan"]["variant"]))
    variant = Variant.parse(ranks.from_first(str(variant)))
    loop = assemble_again(parts_of(folder, material, observe, ranks, checkpoint), checkpoint, variant)
    return loop, variant, extend(loop, steps)


def _new_steps(folder: RunFolder, checkpoint: Checkpoint, steps: int | None, minutes: float | None) -> int | None:
    """The last step that a run is to go on to, if another was asked for, now or when it went on before.

    Raises:
        RunFolderError: if there is nothing left to do.
    """
    progress = checkpoint.state["progress"]
    if minutes is not None:
        seconds = folder.facts.get("replan", folder.facts["plan"])["step_seconds"]
        steps = checkpoint.step + max(1, int(60 * minutes / seconds))
    asked, steps = steps, steps or folder.facts.get("extended_to")
    events = folder.metrics()
    is_closed = bool(events) and events[-1].get("event") == "Finished" and events[-1]["completed"]
    if (steps or progress["steps"]) > checkpoint.step or (asked is None and not is_closed):
        return steps
    if asked:
        raise RunFolderError(
            f"more than the {checkpoint.step:,} steps that the run in '{folder.path}' has done",
            came=f"--steps {asked}",
            remedy="say how many it shall have in all",
        )
    raise RunFolderError(
        f"a run in '{folder.path}' that was stopped before its end",
        came=f"one that has done all its {checkpoint.step:,} steps",
        remedy=f"use its model, or train it on with --resume {folder.path} --steps {2 * checkpoint.step}",
    )


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
    """Refuse to go on with another text or other settings; the text may go by another name.

    What an older run does not say was as it is by default.
    """
    name = folder.facts.get("data", {}).get("name")
    config, there = decided["config"], folder.facts.get("config", {})
    defaults = asdict(TrainingConfig())
    said = {key: value for key, value in config["training"].items() if key in there.get("training", ())}
    unsaid = {key: value for key, value in config["training"].items() if key not in said and value != defaults[key]}
    asked, was = config["training"], there.get("training", {})
    other = [name for name in was if asked.get(name) != was[name]]
    if other and set(other) <= set(LENGTHS) and config | {"training": was} == there:
        raise RunFolderError(
            f"the run that '{folder.path}' holds",
            came=", ".join(f"config.training.{name} is {asked[name]}, and was {was[name]}" for name in other),
            remedy=f"to go on to another last step, say pellucid train --resume {folder.path} --steps N",
        )
    begun_from = decided.get("from")
    if begun_from and "from" in folder.facts:  # the same model may lie elsewhere
        begun_from = begun_from | {"path": folder.facts["from"]["path"]}
    same = {"data": decided["data"] | {"name": name}, "config": config | {"training": said | unsaid}}
    folder.require_same(decided | same | {"from": begun_from}, ("config", "data", "seed", "from"))


def _latest(folder: RunFolder) -> Path:
    """The checkpoint to go on from."""
    saved, events = folder.latest_checkpoint(), folder.metrics()
    last = [event for event in events if event.get("event") in ("Saved", "Finished")]
    if saved is None and last:
        raise RunFolderError(
            f"a whole checkpoint in '{folder.path}' to go on from",
            came="none that is as it was saved: they are damaged or gone",
            remedy="put them back from a copy; the model itself is in model.safetensors, and may still be good",
        )
    if "imported" in folder.facts:
        raise RunFolderError(
            f"a run in '{folder.path}' that was trained here",
            came="a model that was imported",
            remedy=f"train it on with pellucid train TEXT --from {folder.path}",
        )
    if saved is None or "plan" not in folder.facts:
        raise RunFolderError(
            f"a checkpoint in '{folder.path}' to go on from",
            came="none: the run was ended before its first",
            remedy="remove the folder and begin again, or give the new run another --out",
        )
    return saved


def _resumed(loop: Loop, variant: str, last_saved: int) -> Resumed:
    folder, progress = loop.keeper.folder, loop.progress
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
