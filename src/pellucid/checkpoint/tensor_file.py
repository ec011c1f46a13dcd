"""Tensors in a safetensors file: numbers and names, and nothing that could run.

In: named tensors.  Out: a file, and back; a model filled from it.  Used by: model_files, checkpoints, train.
Read next: model_files.py.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from pellucid.checkpoint.durable import replacing
from pellucid.checkpoint.stored_tensors import StoredTensors
from pellucid.errors import ModelFileError

FACTS = "__metadata__"
"""Where a safetensors header holds short texts."""
WRAPPER_PREFIX = re.compile(r"(^|(?<=\.))(_orig_mod|module|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.")
"""What torch.compile, DDP, FSDP and activation checkpointing put into the names of a wrapped model's parameters."""


def plain_names(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors under the names that the unwrapped model gives them.

    Example:
        >>> list(plain_names({"_orig_mod.module.lm_head.weight": torch.zeros(1)}))
        ['lm_head.weight']
    """
    return {WRAPPER_PREFIX.sub("", name): tensor for name, tensor in tensors.items()}


def without_copies(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same without names whose tensor is, to the last number of the same memory, that of an earlier name.

    Example:
        >>> weight = torch.zeros(2, 2)
        >>> list(without_copies({"token_embedding.weight": weight, "lm_head.weight": weight}))
        ['token_embedding.weight']
    """
    seen, kept = set(), {}
    for name, tensor in tensors.items():
        place = (tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        if tensor.numel() == 0 or tensor.device.type == "meta" or place not in seen:
            kept[name] = tensor
        seen.add(place)
    return kept


def write_tensors(path: Path, tensors: Mapping[str, Tensor], facts: dict[str, str] | None = None) -> None:
    """Write tensors to a safetensors file, all or nothing; `facts` are short texts that go into its header."""
    storages, independent = set(), {}
    for name, tensor in tensors.items():
        tensor = tensor.detach().cpu().contiguous()
        storage = tensor.untyped_storage()
        # The library refuses tensors that share memory, and would write the whole memory of a view.
        if storage.data_ptr() in storages or storage.nbytes() != tensor.numel() * tensor.element_size():
            tensor = tensor.clone()
        storages.add(tensor.untyped_storage().data_ptr())
        independent[name] = tensor
    with replacing(path) as temporary:
        temporary.touch()
        usual_mode = temporary.stat().st_mode
        try:
            save_file(independent, temporary, {"format": "pt", **(facts or {})})
            _in_order(temporary)
            temporary.chmod(usual_mode)  # the library makes its files readable by their owner alone
        except SafetensorError as error:  # the library wraps what the disk says in a text of its own
            raise OSError(_error_number(str(error)), str(error), str(path)) from error


def _in_order(path: Path) -> None:
    """Sort the facts in a header, which the library writes in any order: equal runs shall have equal bytes."""
    with path.open("r+b") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        header[FACTS] = dict(sorted(header[FACTS].items()))
        file.seek(8)
        file.write(json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode().ljust(length))


def _error_number(message: str) -> int:
    found = re.search(r"os error (\d+)", message)
    return int(found[1]) if found else 0


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, on the CPU.

    Raises:
        ModelFileError: if the file is missing, cut short, or of another kind (a pickle is never opened).
    """
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - the file is no dictionary
    except (OSError, SafetensorError) as error:
        raise ModelFileError(
            "a whole safetensors file",
            came=f"'{path}', which cannot be read as one ({error})",
            remedy="copy it again from where it came",
        ) from error


@torch.no_grad()
def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], source: str | Path = "the file") -> None:
    """Put tensors into a model by name; every one must fit, and none may be missing.

    A tied head is stored once. Where a file holds both of a tied pair, they must be equal: taking either would
    silently change the model.

    Args:
        model: Is written to; its parameters keep their identity, device and number type.
        tensors: By the model's own names; prefixes of wrappers are ignored.
        source: Where they came from, for the message.

    Raises:
        ModelFileError: naming what is missing, left over or of another shape.
    """
    tensors = plain_names(tensors)
    targets = _targets(
        model, {name: tuple(tensor.shape) for name, tensor in tensors.items()}, source, tensors.__getitem__
    )
    for name, target in targets.items():
        target.copy_(tensors[name])


def read_weights(model: nn.Module, stored: StoredTensors, source: str | Path = "the file") -> None:
    """The same from a file, each tensor read where it belongs: nothing is in memory twice."""
    names = _names(stored)
    for name, target in refuse_other_weights(model, stored, source).items():
        stored.read_into(names[name], target)
        refuse_what_is_no_number(target, f"{name} in {source}")


def refuse_other_weights(model: nn.Module, stored: StoredTensors, source: str | Path = "the file") -> dict[str, Tensor]:
    """See that a file's weights are the model's, which may be without memory; give where each goes.

    Raises:
        ModelFileError: naming what is missing, left over or of another shape.
    """
    names = _names(stored)
    shapes = {name: stored.shape(theirs) for name, theirs in names.items()}
    return _targets(model, shapes, source, lambda name: stored.read(names[name]))


def _names(stored: StoredTensors) -> dict[str, str]:
    return {WRAPPER_PREFIX.sub("", name): name for name in stored}


def _targets(
    model: nn.Module, shapes: Mapping[str, tuple[int, ...]], source: str | Path, read: Callable[[str], Tensor]
) -> dict[str, Tensor]:
    """Where tensors of these names and shapes go, a tied pair once; refused unless they are the model's."""
    targets = plain_names(model.state_dict(keep_vars=True))
    given = {id(targets[name]): name for name in shapes if name in targets}  # a tied pair is one tensor
    problems = [f"{name} is missing" for name, target in targets.items() if id(target) not in given]
    problems += [f"{name} is unknown" for name in shapes if name not in targets]
    for name in shapes.keys() & targets.keys():
        twin = given[id(targets[name])]
        if shapes[name] != tuple(targets[name].shape):
            problems.append(f"{name} has shape {shapes[name]}, not {tuple(targets[name].shape)}")
        elif twin != name and not torch.equal(read(name), read(twin)):
            problems.append(f"{name} and {twin} are tied in the model and differ in the file")
    refuse_foreign_weights(problems, f"the weights of this model in {source}")
    return {name: targets[name] for name in given.values()}


def refuse_what_is_no_number(tensor: Tensor, name: str) -> None:
    """Refuse a weight in which something is infinite or no number: everything computed from it would be none either.

    Args:
        tensor: The weight.
        name: What it is called, and where, for the message.

    Raises:
        ModelFileError: naming it.
    """
    # A sum reads memory as fast as it can be read; only one that overflows needs the slow look.
    if not torch.isfinite(tensor.sum()) and not torch.isfinite(tensor).all():
        raise ModelFileError(
            f"numbers in {name}", came="NaN or infinity among them", remedy="copy the file again, or use another"
        )


def refuse_foreign_weights(problems: Sequence[str], expected: str) -> None:
    """Refuse weights that are not a model's, if anything is wrong with them.

    Args:
        problems: Phrases, each naming a tensor and what is wrong with it.
        expected: What they should have been.

    Raises:
        ModelFileError: naming the first few.
    """
    if problems:
        more = f", and {len(problems) - 4} more" if len(problems) > 4 else ""  # four fit a terminal's few lines
        raise ModelFileError(
            expected,
            came="; ".join(sorted(problems)[:4]) + more,
            remedy="use the config and the weights of one and the same model",
        )
