"""Checkpoints: everything a run needs to go on as if it had never stopped, one folder for each kept step.

    checkpoints/step-000880/
      model.safetensors       the weights
      optimizer.safetensors   every other tensor: of the optimizer, of the random streams
      state.json              every number and word, and the SHA-256 and size of the two files above

A folder bears its name only when all of it is on the disk, so what has a name is whole. Listing looks at names and
sizes; loading checks every byte.

In: tensors and a state.  Out: folders, and back.  Used by: run_folder.  Read next: metrics.py.
"""

import json
import math
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from pellucid.checkpoint.durable import TEMPORARY, publish_folder, remove_folder, sha256_of
from pellucid.checkpoint.state_tree import put_together, take_apart
from pellucid.checkpoint.tensor_file import plain_names, read_tensors, without_copies, write_tensors
from pellucid.errors import ModelFileError

FORMAT, VERSION = "pellucid-checkpoint", 1
MODEL, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"
NAME = re.compile(r"step-(\d{6,})")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint, read."""

    step: int
    """How many optimizer steps had been taken."""
    model: dict[str, Tensor]
    """Weights by name; a tied weight once. For `load_weights`."""
    optimizer: dict[str, Any]
    """The tree that was saved."""
    state: dict[str, Any]
    """The tree that was saved: place in the data, random streams, plan."""
    score: float | None
    """Held-out bits per character at this step, if it was evaluated; lower is better."""
    metrics_bytes: int
    """How long metrics.jsonl was."""


@dataclass(frozen=True)
class CheckpointInfo:
    """What is known of a checkpoint without reading its tensors."""

    path: Path
    step: int
    score: float | None


def save(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint into `folder`, all or nothing, and give its path."""
    path = folder / f"step-{checkpoint.step:06d}"
    temporary = folder / f"{TEMPORARY}{path.name}-{os.getpid()}"
    try:
        temporary.mkdir(parents=True)
        others: dict[str, Tensor] = {}
        optimizer = take_apart(checkpoint.optimizer, "optimizer", others)
        state = take_apart(checkpoint.state, "state", others)
        write_tensors(temporary / MODEL, without_copies(plain_names(checkpoint.model)))
        write_tensors(temporary / OPTIMIZER, others)
        described = {
            "format": FORMAT,
            "version": VERSION,
            "step": checkpoint.step,
            "score": take_apart(checkpoint.score, "score", {}),
            "metrics_bytes": checkpoint.metrics_bytes,
            "files": {name: _describe(temporary / name) for name in (MODEL, OPTIMIZER)},
            "optimizer": optimizer,
            "state": state,
        }
        (temporary / STATE).write_text(json.dumps(described, ensure_ascii=False, allow_nan=False), encoding="utf-8")
        publish_folder(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return path


def load(path: Path) -> Checkpoint:
    """Read a checkpoint, having checked every byte against the hashes in its state.json.

    Raises:
        ModelFileError: if anything is missing, changed or of another format.
    """
    described = _read_state(path)
    for name, expected in described["files"].items():
        if not (path / name).is_file() or _describe(path / name) != expected:
            raise ModelFileError(
                f"{name} of '{path}' as it was saved",
                came="a file whose SHA-256 or size differs, or none",
                remedy="delete this checkpoint's folder; the run goes on from the one before",
            )
    others = read_tensors(path / OPTIMIZER)
    try:
        return Checkpoint(
            step=described["step"],
            model=read_tensors(path / MODEL),
            optimizer=put_together(described["optimizer"], others),
            state=put_together(described["state"], others),
            score=put_together(described["score"], {}),
            metrics_bytes=described["metrics_bytes"],
        )
    except (KeyError, ValueError, TypeError) as error:
        raise _unreadable(path, f"{error!r}") from error


def listed(folder: Path) -> list[CheckpointInfo]:
    """The whole checkpoints in `folder`, oldest first."""
    found = []
    for path in folder.glob("step-*"):
        if not NAME.fullmatch(path.name):
            continue
        try:
            described = _read_state(path)
            whole = all((path / name).stat().st_size == file["bytes"] for name, file in described["files"].items())
            info = CheckpointInfo(path, described["step"], put_together(described["score"], {}))
        except (ModelFileError, OSError, KeyError, TypeError):
            continue
        if whole:
            found.append(info)
    return sorted(found, key=lambda info: info.step)


def best_of(infos: list[CheckpointInfo]) -> CheckpointInfo | None:
    """The one with the lowest score, the earliest of equals; one without a score, or with NaN, is never the best."""
    scored = [(info.score, info.step, info) for info in infos if info.score is not None and not math.isnan(info.score)]
    return min(scored, key=lambda scored: scored[:2])[2] if scored else None


def prune(folder: Path, keep_more: int = 0) -> None:
    """Remove all but the latest, the best, and the `keep_more` before the latest."""
    infos = listed(folder)
    kept = {info.path for info in infos[-1 - keep_more :]}
    best = best_of(infos)
    for info in infos:
        if info.path not in kept and info is not best:
            remove_folder(info.path)


def _describe(path: Path) -> dict[str, Any]:
    return {"sha256": sha256_of(path), "bytes": path.stat().st_size}


def _read_state(path: Path) -> Mapping[str, Any]:
    try:
        described = json.loads((path / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(path, str(error)) from error
    if not isinstance(described, dict) or (described.get("format"), described.get("version")) != (FORMAT, VERSION):
        raise _unreadable(path, f"a {STATE} of another format or version")
    if not isinstance(described.get("files"), dict) or described["files"].keys() != {MODEL, OPTIMIZER}:
        raise _unreadable(path, f"a {STATE} that names other files")
    return described


def _unreadable(path: Path, came: str) -> ModelFileError:
    return ModelFileError(
        f"a whole checkpoint in '{path}'",
        came=came,
        remedy="delete this checkpoint's folder; the run goes on from the one before",
    )
