"""A run from text to model: everything is decided once, written down, and then carried out step by step.

    sources ─▶ recipe ─▶ run folder ─▶ material, yardsticks ─▶ model ─▶ trial ─▶ plan ─▶ loop ─▶ Finished

In: a `Request`, or the folder of a run that was stopped.  Out: the run folder; events.  Used by: the command line.
Read next: ../generate/.
"""

import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from pellucid.checkpoint import RunFolder
from pellucid.errors import RunFolderError
from pellucid.train.assembly import assemble, assemble_again
from pellucid.train.events import Event, Finished, Observer, YardsticksMeasured
from pellucid.train.loop import Loop
from pellucid.train.machine import reproducible
from pellucid.train.material import Material, make_material, measure, reopen_material
from pellucid.train.request import Request
from pellucid.train.sample import CLOSING_TOKENS, Sampler
from pellucid.yardsticks import longest_copied


def train(
    request: Request, observe: Observer, *, begun: float | None = None, should_stop: Callable[[], bool] = lambda: False
) -> Finished:
    """Make a new run.

    Args:
        request: What to do.
        observe: Hears every event.
        begun: When the person pressed Enter, on time.monotonic's clock; minutes count from here. Default: now.
        should_stop: Asked after every step.

    Raises:
        UserError: if the text or the settings cannot work, or the folder is not free. Nothing is left behind.
    """
    begun = time.monotonic() if begun is None else begun
    recipe = request.recipe()
    folder = RunFolder.create(request.out, request.first_facts(recipe))
    with folder.lock(discard_on_failure=True), reproducible(request.training.threads):
        heard = _recorded(folder, observe)
        heard(request.text_read())
        material = make_material(request.sources, recipe, folder.tokens_path, heard)
        material.tokenizer.save(folder.tokenizer_path)
        yardsticks = measure(request.sources, heard)
        folder.write_run(folder.facts | {"yardsticks": asdict(yardsticks)})
        sampler = Sampler(material.tokenizer, request.training.prompt, request.training.seed)
        loop = assemble(request, recipe, folder, material, sampler, heard, begun=begun)
        return _carry_out(loop, material, sampler, yardsticks, should_stop, begun=begun)


def resume(
    path: Path, observe: Observer, *, begun: float | None = None, should_stop: Callable[[], bool] = lambda: False
) -> Finished:
    """Go on with a run from its latest checkpoint, with everything as it was decided then.

    Args:
        path: The run folder.
        observe: Hears every event from here on.
        begun: When the person pressed Enter. Default: now.
        should_stop: Asked after every step.

    Raises:
        RunFolderError: if there is no run, or nothing to go on with.
    """
    folder = RunFolder.open(path)
    with folder.lock():
        saved = folder.latest_checkpoint()
        if saved is None or "plan" not in folder.facts:
            raise RunFolderError(
                f"a checkpoint in '{path}' to go on from",
                came="none: the run was stopped before its first",
                remedy="start it again with its first command",
            )
        checkpoint = folder.load_checkpoint(saved)
        folder.rewind_metrics(checkpoint)
        with reproducible(folder.facts["environment"]["threads"]):
            material = reopen_material(folder.tokens_path, folder.tokenizer_path)
            training = folder.facts["config"]["training"]
            sampler = Sampler(material.tokenizer, training["prompt"], training["seed"])
            loop = assemble_again(folder, material, checkpoint, sampler, _recorded(folder, observe))
            yardsticks = YardsticksMeasured(**folder.facts["yardsticks"])
            begun = time.monotonic() if begun is None else begun
            return _carry_out(loop, material, sampler, yardsticks, should_stop, begun=begun)


def _carry_out(
    loop: Loop,
    material: Material,
    sampler: Sampler,
    yardsticks: YardsticksMeasured,
    should_stop: Callable[[], bool],
    *,
    begun: float,
) -> Finished:
    """The loop, and what there is to say at its end."""
    started, first, batches = time.monotonic(), loop.progress.step, loop.train_step.batches
    state = loop(should_stop)
    tokens = (state.step - first) * batches.batch_size * batches.context_length
    tokens_per_second = tokens / max(time.monotonic() - started, 1e-9)
    sample = sampler(loop.folder.load_model(), CLOSING_TOKENS)
    finished = Finished(
        completed=state.step >= state.steps,
        step=state.step,
        steps=state.steps,
        planned_steps=state.planned_steps,
        best_step=state.best_step,
        held_out=state.best_held_out,
        standard_error=state.best_standard_error,
        held_out_even=state.best_even,
        held_out_odd=state.best_odd,
        train=state.train,
        yardsticks=asdict(yardsticks),
        copied=longest_copied(sample, material.training_text()).text if sample else "",
        sample=sample,
        seconds=time.monotonic() - begun,
        tokens_per_second=tokens_per_second,
        skipped_steps=state.skipped,
        out=str(loop.folder.path),
    )
    loop.observe(finished)
    return finished


def _recorded(folder: RunFolder, observe: Observer) -> Observer:
    """Every event goes into metrics.jsonl before anyone else hears it."""

    def heard(event: Event) -> None:
        folder.append_metrics(event.as_json())
        observe(event)

    return heard
