"""The run folder: all that training leaves behind, and all that going on needs.

    runs/book-01/
      run.json            everything that was decided
      model.safetensors   weights of the best held-out step, and config.json
      tokenizer.json      the very tokenizer; a run never looks for one elsewhere
      chat_template.jinja how a chat becomes one text, if the model knows chats
      adapter/            low-rank factors alone, in PEFT's format, if such were trained
      tokens/             the text as ids
      metrics.jsonl       one JSON object for each event
      checkpoints/        complete, resumable states: the latest and the best
      report.html         for people

One process at a time may write; `lock` makes sure.

In: facts, events, tensors.  Out: the folder.  Used by: train, load, report, compare, the command line.
Read next: ../train/.
"""

import json
import os
import shlex
import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from torch import Tensor

from pellucid.checkpoint import checkpoints
from pellucid.checkpoint.checkpoints import Checkpoint, CheckpointInfo, best_of
from pellucid.checkpoint.durable import TEMPORARY, force_to_disk, in_a_sentence, sweep, write_durably
from pellucid.checkpoint.metrics import append_line, cut_to, read_lines
from pellucid.checkpoint.model_files import CONFIG, WEIGHTS, read_config, read_model, write_config, write_model
from pellucid.errors import RunFolderError
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM

try:
    import fcntl
except ImportError:  # Windows has no flock; there two processes are not kept apart
    fcntl = None

RUN, LOCK = "run.json", ".lock"
CONTENTS = (
    RUN,
    WEIGHTS,
    CONFIG,
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "adapter",
    "own_parts",
    "tokens",
    "metrics.jsonl",
    "checkpoints",
    "report.html",
)


class RunFolder:
    """A folder that holds one run. Made by `create` or `open`, not by calling the class.

    Example:
        >>> import tempfile
        >>> folder = RunFolder.create(Path(tempfile.mkdtemp()) / "book-01", {"seed": 1})
        >>> with folder.lock():
        ...     folder.append_metrics({"event": "started"})
        >>> RunFolder.open(folder.path).facts, folder.metrics()
        ({'seed': 1}, [{'event': 'started'}])
    """

    def __init__(self, path: Path, facts: dict[str, Any]) -> None:
        self.path, self.facts = path, facts
        self.tokenizer_path = path / "tokenizer.json"
        self.chat_template_path = path / "chat_template.jinja"
        self.adapter_path = path / "adapter"
        self.tokens_path = path / "tokens"
        self.metrics_path = path / "metrics.jsonl"
        self.report_path = path / "report.html"
        self.checkpoints_path = path / "checkpoints"

    @classmethod
    def create(cls, path: str | Path, facts: dict[str, Any]) -> "RunFolder":
        """Make a new run folder.

        Args:
            path: A new path, or an empty folder, or what a run left that was killed before it saved anything.
            facts: For run.json.

        Raises:
            RunFolderError: if something else is there, naming it; or if the disk refuses.
        """
        path = Path(path)
        with in_a_sentence(path):
            is_new = not path.exists()
            cls._make_vacant(path)
            path.mkdir(parents=True, exist_ok=True)
            folder = cls(path, facts)
            try:
                folder.write_run(facts)
                folder.checkpoints_path.mkdir()
            except BaseException:
                folder.discard()
                raise
            if is_new:
                force_to_disk(path.absolute().parent)
        return folder

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """The run folder at `path`; nothing is written.

        Raises:
            RunFolderError: if there is none.
        """
        path = Path(path)
        facts = _read_facts(path)
        if facts is None:
            raise RunFolderError(
                f"a run folder at '{path}'",
                came=f"a folder without {RUN}" if path.is_dir() else "a file" if path.exists() else "nothing there",
                remedy=f"make a run of this model: pellucid import {shlex.quote(str(path))} --out RUN"
                if _looks_like_a_model(path)
                else "give the folder that `pellucid train` wrote, such as runs/book-01",
            )
        return cls(path, facts)

    @classmethod
    def _make_vacant(cls, path: Path) -> None:
        if not path.exists() or (path.is_dir() and all(file.name.startswith(TEMPORARY) for file in path.iterdir())):
            return
        facts = _read_facts(path)
        if facts is None:
            what = "a folder with other files in it" if path.is_dir() else "a file"
            raise RunFolderError(f"a new or empty folder at '{path}'", came=what, remedy="choose another name")
        there = cls(path, facts)
        if there.has_results():
            raise RunFolderError(f"a new folder at '{path}'", came="one that holds a run", remedy="choose another name")
        with there.lock():  # killed before it saved anything, and not at work now: nothing is lost
            there.discard()

    def require_same(self, facts: Mapping[str, Any], keys: Sequence[str] = ("config", "data", "seed")) -> None:
        """Refuse to go on in this folder with another run's data or settings.

        Args:
            facts: Of the run that wants to go on.
            keys: Top-level keys that make a run what it is.

        Raises:
            RunFolderError: naming what differs, with both values.
        """
        found = [line for key in keys for line in _differences(self.facts.get(key), facts.get(key), key)]
        if found:
            more = f", and {len(found) - 3} more" if len(found) > 3 else ""  # three fit a sentence
            raise RunFolderError(
                f"the run that '{self.path}' holds",
                came="another: " + ", ".join(found[:3]) + more,
                remedy="choose another name for the new run, or repeat the old settings",
            )

    @contextmanager
    def lock(self, *, discard_on_failure: bool = False) -> Generator["RunFolder", None, None]:
        """Keep the folder for this process while the block lasts, and clear away what a killed one left half-made.

        Args:
            discard_on_failure: If the block fails before anything has been saved, remove the folder: a run that could
                not begin leaves nothing behind.

        Raises:
            RunFolderError: if another process has it, naming the process.
        """
        with in_a_sentence(self.path):
            file = (self.path / LOCK).open("a+", encoding="ascii")
        with file:
            self._take(file)
            with in_a_sentence(self.path):
                sweep(self.path)
                sweep(self.checkpoints_path)
            try:
                yield self
            except BaseException:
                if discard_on_failure:
                    self.discard()
                raise

    def _take(self, file) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            owner = file.read().strip()
            raise RunFolderError(
                f"'{self.path}' to be free",
                came=f"a folder that process {owner} is writing" if owner else "one that another process is writing",
                remedy="wait until it has finished, or choose another name for this run",
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()

    def has_results(self) -> bool:
        """Whether anything has been saved that would be a loss."""
        return (self.path / WEIGHTS).exists() or bool(checkpoints.listed(self.checkpoints_path))

    def discard(self) -> None:
        """Remove the run unless it has results, and its folder unless something else is in it."""
        if self.has_results():
            return
        for name in (*CONTENTS, LOCK):
            file = self.path / name
            if file.is_dir():
                shutil.rmtree(file, ignore_errors=True)
            else:
                file.unlink(missing_ok=True)
        sweep(self.path)
        if not any(self.path.iterdir()):
            with suppress(OSError):  # the folder one stands in, called ".", cannot be removed, and need not be
                self.path.rmdir()

    def write_run(self, facts: dict[str, Any]) -> None:
        """Replace run.json. Values: text, numbers, booleans, None, lists and dictionaries of these."""
        with in_a_sentence(self.path):
            text = json.dumps(facts, indent=2, ensure_ascii=False)
            write_durably(self.path / RUN, text.encode() + b"\n")
        self.facts = facts

    def settle(self) -> None:
        """Force everything that was written so far to the disk: what others wrote here, too, survives a power cut."""
        with in_a_sentence(self.path):
            for file in sorted(self.path.rglob("*"), reverse=True):
                force_to_disk(file)
            force_to_disk(self.path)

    def append_metrics(self, event: dict[str, Any]) -> None:
        """Add one event to metrics.jsonl, flushed; NaN and infinities become null."""
        with in_a_sentence(self.metrics_path):
            append_line(self.metrics_path, event)

    def metrics(self) -> list[dict[str, Any]]:
        """All events so far."""
        with in_a_sentence(self.metrics_path):
            return read_lines(self.metrics_path)

    def rewind_metrics(self, checkpoint: Checkpoint) -> None:
        """Forget the events after `checkpoint`: the run that goes on from it writes them again."""
        with in_a_sentence(self.metrics_path):
            cut_to(self.metrics_path, checkpoint.metrics_bytes)

    def save_checkpoint(
        self,
        step: int,
        model_tensors: Mapping[str, Tensor],
        optimizer_state: Mapping[str, Any],
        state: Mapping[str, Any],
        *,
        score: float | None = None,
        keep_more: int = 0,
    ) -> Path:
        """Save all that going on needs, all or nothing; then remove all but the latest and the best.

        Args:
            step: Optimizer steps taken.
            model_tensors: The model's `state_dict()`.
            optimizer_state: A tree of dictionaries, lists, tuples, numbers, text and tensors, such as {"muon":
                {"state": {parameter name: {"momentum": tensor}}}}; it comes back exactly.
            state: A tree of the same kind for everything else: place in the data, random streams, plan.
            score: Held-out bits per character, if evaluated at this step: the lowest is the best checkpoint.
            keep_more: How many checkpoints before the latest to keep as well.

        Returns:
            The checkpoint's folder.
        """
        with in_a_sentence(self.checkpoints_path):
            metrics_bytes = 0
            if self.metrics_path.exists():
                force_to_disk(self.metrics_path)
                metrics_bytes = self.metrics_path.stat().st_size
            checkpoint = Checkpoint(step, dict(model_tensors), dict(optimizer_state), dict(state), score, metrics_bytes)
            path = checkpoints.save(self.checkpoints_path, checkpoint)
            checkpoints.prune(self.checkpoints_path, keep_more)
        return path

    def checkpoints(self) -> list[CheckpointInfo]:
        """The whole checkpoints, oldest first."""
        return checkpoints.listed(self.checkpoints_path)

    def latest_checkpoint(self) -> Path | None:
        """The newest whole checkpoint, if there is one."""
        infos = self.checkpoints()
        return infos[-1].path if infos else None

    def best_checkpoint(self) -> Path | None:
        """The whole checkpoint with the lowest held-out score, if any has one."""
        best = best_of(self.checkpoints())
        return best.path if best else None

    def load_checkpoint(self, path: str | Path) -> Checkpoint:
        """Read a checkpoint, every byte checked.

        Raises:
            ModelFileError: if it is not as it was saved.
        """
        with in_a_sentence(Path(path)):
            return checkpoints.load(Path(path))

    def save_model(self, model_tensors: Mapping[str, Tensor], config: ModelConfig, **facts: str) -> None:
        """Write model.safetensors and config.json; `facts` are short texts for its header, such as the step."""
        with in_a_sentence(self.path):
            write_model(self.path, model_tensors, config, **facts)

    def save_config(self, config: ModelConfig) -> None:
        """Write what the model will be, before it has weights."""
        with in_a_sentence(self.path):
            write_config(self.path, config)

    def model_config(self) -> ModelConfig:
        """What the model is."""
        return read_config(self.path)

    def load_model(self) -> TransformerLM:
        """The saved model, on the CPU, in evaluation mode."""
        return read_model(self.path)


def _read_facts(path: Path) -> dict[str, Any] | None:
    """The contents of run.json, or None if there is none."""
    try:
        facts = json.loads((path / RUN).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise RunFolderError(
            f"JSON in '{path / RUN}'", came=str(error), remedy="restore the file, or choose another folder"
        ) from error
    return facts if isinstance(facts, dict) else {}


def _looks_like_a_model(path: Path) -> bool:
    return (path.suffix.lower() in (".gguf", ".pt", ".pth") and path.is_file()) or (path / CONFIG).exists()


def _differences(there: Any, here: Any, name: str) -> list[str]:
    """Where two trees of facts differ, as phrases."""
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        keys = sorted(there.keys() | here.keys())
        return [line for key in keys for line in _differences(there.get(key), here.get(key), f"{name}.{key}")]
    there, here = (list(value) if isinstance(value, tuple) else value for value in (there, here))
    return [] if there == here else [f"{name} is {here!r}, and was {there!r}"]
