"""What a run keeps of itself on the disk: the first rank writes, the others hand over their parts.

The files are the same, by name, shape and layout, whether one process trained or many, and however they shared the
weights; so a run may go on with another number of processes.

In: a model, an optimizer, where the run stands.  Out: the best weights; checkpoints.  Used by: loop, assembly.
Read next: loop.py.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pellucid.checkpoint import RunFolder
from pellucid.nn import TransformerLM
from pellucid.optim import ModelOptimizer, whole_state
from pellucid.parallel import ALONE, Ranks
from pellucid.train.progress import Progress

AVERAGE = "average/"  # before the names of averages among the optimizer's tensors


@dataclass(frozen=True, kw_only=True)
class Keeper:
    """Saves a run; every rank has to ask."""

    folder: RunFolder
    model: TransformerLM
    optimizer: ModelOptimizer
    ranks: Ranks = ALONE
    keep_more: int = 0
    """How many checkpoints to keep beside the latest and the best."""

    def judged(self) -> AbstractContextManager[Any]:
        """Where the model has the weights that are evaluated, sampled from and kept: its own, or their mean."""
        average = self.optimizer.average
        return nullcontext() if average is None else average.swapped()

    def best(self, step: int) -> None:
        """Put the weights that are judged, as they are now, into model.safetensors."""
        with self.judged():
            weights = whole_state(self.model.state_dict(keep_vars=True), keep=self.ranks.is_first)
            if self.ranks.is_first:
                self.folder.save_model(weights, self.model.config, step=str(step))

    def checkpoint(self, progress: Progress) -> Path:
        """Save all that going on needs."""
        first = self.ranks.is_first
        weights = whole_state(self.model.state_dict(keep_vars=True), keep=first)
        state: dict[str, Any] = whole_state(self.optimizer.state_dict(), keep=first)
        if average := self.optimizer.average:
            averages = whole_state(average.state_dict(), keep=first)
            state |= {f"{AVERAGE}{name}": tensor for name, tensor in averages.items()}
        if not first:
            return self.folder.checkpoints_path
        return self.folder.save_checkpoint(
            progress.step,
            weights,
            state,
            {"progress": asdict(progress)},
            score=progress.best_even if progress.best_step == progress.step and progress.best_bits else None,
            keep_more=self.keep_more,
        )

    def best_again(self) -> None:
        """Put the best checkpoint's weights into model.safetensors: a last look may have put others there, or a kill
        may have come between the two."""
        best = self.folder.best_checkpoint() or self.folder.latest_checkpoint()
        if self.ranks.is_first and best:
            checkpoint = self.folder.load_checkpoint(best)
            weights = {
                name: checkpoint.optimizer.get(f"{AVERAGE}{name}", tensor) for name, tensor in checkpoint.model.items()
            }
            self.folder.save_model(weights, self.model.config, step=str(checkpoint.step))

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the optimizer's part of a checkpoint."""
        averages = {name.removeprefix(AVERAGE): value for name, value in state.items() if name.startswith(AVERAGE)}
        self.optimizer.load_state_dict({name: state[name] for name in state if not name.startswith(AVERAGE)})
        if average := self.optimizer.average:
            average.load_state_dict(averages)
