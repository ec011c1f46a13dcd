"""A tree of dictionaries, lists, numbers and tensors, taken apart into tensors and JSON, and put together exactly.

    {"step": 3, "mean": tensor}   ⇄   {"step": 3, "mean": {"$tensor": "adamw/mean"}}  and  {"adamw/mean": tensor}

JSON has no tuples, no keys that are numbers, no infinities; those are written as objects whose one key begins with $:

    $tensor  its name       $tuple  its items       $float  "nan", "inf" or "-inf"       $items  pairs of key and value

In: a tree.  Out: JSON and named tensors, and back.  Used by: checkpoints.  Read next: tensor_file.py.
"""

import math
from typing import Any

from torch import Tensor


def take_apart(tree: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """Move every tensor of `tree` into `tensors`, under names that begin with `name`, and give the rest as JSON.

    Args:
        tree: Dictionaries with text or number keys, lists, tuples, text, numbers, booleans, None, tensors.
        name: Begins the tensors' names; keys are added behind slashes.
        tensors: Is written to.

    Raises:
        TypeError: for anything else, naming its place (a mistake of the caller's).

    Example:
        >>> import torch
        >>> tensors = {}
        >>> take_apart({"betas": (0.9, 0.95), "mean": torch.zeros(2)}, "adamw", tensors)
        {'betas': {'$tuple': [0.9, 0.95]}, 'mean': {'$tensor': 'adamw/mean'}}
        >>> tensors
        {'adamw/mean': tensor([0., 0.])}
    """
    match tree:
        case Tensor():
            tensors[name] = tree
            return {"$tensor": name}
        case dict():
            parts = {key: take_apart(value, f"{name}/{key}", tensors) for key, value in tree.items()}
            if all(isinstance(key, str) and not key.startswith("$") for key in parts):
                return parts
            if not all(type(key) in (str, int) for key in parts) or len({str(key) for key in parts}) < len(parts):
                raise TypeError(f"{name}: keys must be text or whole numbers, and differ when written out")
            return {"$items": [[key, value] for key, value in parts.items()]}
        case list() | tuple():
            items = [take_apart(value, f"{name}/{index}", tensors) for index, value in enumerate(tree)]
            return items if isinstance(tree, list) else {"$tuple": items}
        case float() if not math.isfinite(tree):
            return {"$float": str(float(tree))}
        case None | bool() | int() | float() | str():
            return tree
    raise TypeError(f"{name}: cannot store a {type(tree).__name__} in a checkpoint")


def put_together(tree: Any, tensors: dict[str, Tensor]) -> Any:
    """The tree that `take_apart` was given.

    Raises:
        KeyError: if a tensor is missing.
        ValueError: if an object that begins with $ is of no known kind.

    Example:
        >>> put_together({"betas": {"$tuple": [0.9, {"$float": "inf"}]}}, {})
        {'betas': (0.9, inf)}
    """
    if isinstance(tree, list):
        return [put_together(item, tensors) for item in tree]
    if not isinstance(tree, dict):
        return tree
    match list(tree.items()):
        case [("$tensor", name)]:
            return tensors[name]
        case [("$tuple", items)]:
            return tuple(put_together(item, tensors) for item in items)
        case [("$float", text)]:
            return float(text)
        case [("$items", pairs)]:
            return {key: put_together(value, tensors) for key, value in pairs}
        case [(str() as key, _)] if key.startswith("$"):
            raise ValueError(f"{key} is no kind of value that a checkpoint knows")
    return {key: put_together(value, tensors) for key, value in tree.items()}
