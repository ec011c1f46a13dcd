"""What a run keeps of itself on the disk: the first rank writes, the others hand over their parts.

The files are the same, by name, shape and layout, whether one process trained or many, and however they shared the
weights; so a run may go on with another number of processes.

In: a model, an optimizer, where the run stands.  Out: the best weights; checkpoints.  Used by: loop, assembly.
Read next: loop.py.
"""

from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pellucid.checkpoint import RunFolder
from pellucid.convert import write_adapter
from pellucid.errors import ModelFileError
from pellucid.lora import is_adapted, merged, merged_state, trained_state
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
        judged = ExitStack()
        if self.optimizer.average is not None:
            judged.enter_context(self.optimizer.average.swapped())
        judged.enter_context(merged(self.model))
        return judged

    def best(self, step: int) -> None:
        """Put the weights that are judged, as they are now, into model.safetensors."""
        average = self.optimizer.average
        with nullcontext() if average is None else average.swapped():
            weights = whole_state(self._trained(), keep=self.ranks.is_first)
            if self.ranks.is_first:
                self._publish(weights, step)

    def _trained(self) -> dict[str, Any]:
        """The model's own state, or of a model with factors what is trained of it."""
        return trained_state(self.model) if is_adapted(self.model) else self.model.state_dict(keep_vars=True)

    def _publish(self, weights: dict[str, Any], step: int) -> None:
        """Write a model that needs nothing else; of one with factors these too, for whoever has what they belong to."""
        if is_adapted(self.model):
            with suppress(ModelFileError):  # no family that PEFT knows is this model
                write_adapter(self.folder.adapter_path, self.model, weights, self.folder.facts["from"]["path"])
            weights = merged_state(self.model, weights)
        self.folder.save_model(weights, self.model.config, step=str(step))

    def checkpoint(self, progress: Progress) -> Path:
        """Save all that going on needs."""
        first = self.ranks.is_first
        weights = whole_state(self._trained(), keep=first)
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
            self._publish(weights, checkpoint.step)

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the optimizer's part of a checkpoint."""
        averages = {name.removeprefix(AVERAGE): value for name, value in state.items() if name.startswith(AVERAGE)}
        self.optimizer.load_state_dict({name: state[name] for name in state if not name.startswith(AVERAGE)})
        if average := self.optimizer.average:
            average.load_state_dict(averages)
