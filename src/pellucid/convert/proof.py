"""That what was written is the model: read again, here and by others, and compared number by number.

    weights   equal to the last bit to the model's, rounded to the type they are stored in
    logits    on a real text; others' may differ by what the order of summation does to 32-bit numbers, and no more
    ids       of the same text and of awkward ones, and what is put before every text; the ids that end a text

Other programs run as processes of their own, with nothing of ours in them: what they say of a file is theirs.

In: files and the model they should be.  Out: `Comparison`, or an error.  Used by: export.  Read next: export.py.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from pellucid.convert.awkward import encodable
from pellucid.convert.meaning import differences
from pellucid.convert.outgoing import Outgoing
from pellucid.errors import ExportError
from pellucid.nn import TransformerLM
from pellucid.text import TextTokenizer

OURSELVES = "pellucid itself"
MOST_LOGITS = 16_000_000  # 64 MB as float32
FEWEST_TOKENS, MOST_TOKENS = 64, 512  # a wrong theta shows after some dozens


@dataclass(frozen=True)
class Passage:
    """A text that logits are compared on."""

    ids: Sequence[int]
    what: str
    """Where it is from, in words."""

    def rows(self, context_length: int, vocab_size: int) -> list[list[int]]:
        """The text cut to rows no longer than the context, and as long in all as memory has room for the logits.

        Example:
            >>> [len(row) for row in Passage(range(100), "numbers").rows(40, 1000)]
            [40, 40, 20]
        """
        most = max(FEWEST_TOKENS, min(MOST_TOKENS, MOST_LOGITS // vocab_size))
        ids = list(self.ids[:most])
        return [ids[start : start + context_length] for start in range(0, len(ids), context_length)]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What a reader made of the files, beside the model."""

    reader: str
    """Who read them."""
    difference: float
    """The largest between two logits of one token."""
    spread: float
    """The standard deviation of the logits of one place, so that one can tell a large difference from a small one."""
    tokens: int
    """How many places were compared."""
    texts: int
    """How many texts had the same ids."""


@dataclass(frozen=True, kw_only=True)
class Read:
    """What was read of the files."""

    model: TransformerLM
    tokenizer: TextTokenizer
    end_ids: Collection[int]
    chat_template: str | None


@torch.no_grad()
def logits_of(model: TransformerLM, rows: Sequence[Sequence[int]], num_ids: int) -> np.ndarray:
    """The logits of all places of some rows, in float32, for the ids that are tokens."""
    model = model.float()
    found = [model(torch.tensor([row]))[0, :, :num_ids].numpy() for row in rows]
    return np.concatenate(found)


def prove_here(read: Read, model: Outgoing, expected: Callable[[str], torch.Tensor]) -> None:
    """Compare what our own readers make of the files.

    Args:
        read: That.
        model: What was written.
        expected: For an address of ours, the weight that should be read.

    Raises:
        ExportError: naming the first thing that differs.
    """
    if apart := differences(model.config, read.model.config):
        name, (ours, theirs) = next(iter(apart.items()))
        _refuse(f"{name}={ours}", f"{theirs}", OURSELVES)
    stored = read.model.state_dict()
    for name in model.tensors:
        if not torch.equal(stored[name].float(), expected(name).float()):
            apart_by = (stored[name].float() - expected(name).float()).abs().max().item()
            _refuse(f"the weights {name} as they were", f"others, up to {apart_by:.3g} apart", OURSELVES)
    _same_texts(model, [read.tokenizer.encode(text).tolist() for text in encodable(model.tokenizer)], OURSELVES)
    if read.tokenizer.beginning_ids != model.tokenizer.beginning_ids:
        came = f"{read.tokenizer.beginning_ids}, not {model.tokenizer.beginning_ids}"
        _refuse("the same ids before every text", came, OURSELVES)
    _same_ends(model, {read.tokenizer.end_of_text_id, *read.end_ids}, OURSELVES)
    if read.chat_template != model.chat_template:
        _refuse("the chat template as it was", "another", OURSELVES)


def ask(program: str, path: Path, request: dict[str, Any], folder: Path) -> tuple[dict[str, Any], np.ndarray] | str:
    """Have another program read the files; what it answers, or why it gave no answer.

    Args:
        program: The name of a file beside this one.
        path: What it shall read.
        request: Ids and texts.
        folder: Where files for the conversation may lie.

    Raises:
        ExportError: if it cannot read them.
    """
    script, question, target = Path(__file__).with_name(program), folder / "request.json", folder / "answer"
    question.write_text(json.dumps(request), encoding="utf-8")
    # -P: the script's own folder holds files named like libraries.
    words = [sys.executable, "-P", str(script), str(path), str(question), str(target)]
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(words, capture_output=True, env={**os.environ, **offline}, check=False)
    if done.returncode == -signal.SIGKILL:
        return "it was killed, likely for the memory it needs"
    if done.returncode == -signal.SIGILL:
        return "it was built for another processor"
    said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {done.returncode}"]
    if said and said[-1].startswith(
        ("ImportError", "ModuleNotFoundError")
    ):  # of the program's own: no fault of the files
        return said[-1].partition(": ")[2][:300].rstrip(".")
    if done.returncode:
        said = [line for line in said if line.strip()] or [f"exit code {done.returncode}"]
        _refuse("files that others can read", said[-1][:300], program.removeprefix("in_").removesuffix(".py"))
    told = json.loads(Path(f"{target}.json").read_text(encoding="utf-8"))
    return told, np.load(f"{target}.npy")


def compared(
    reader: str, model: Outgoing, ours: np.ndarray, answer: tuple[dict[str, Any], np.ndarray], tolerance: float
) -> Comparison:
    """Compare another program's answer with ours.

    Args:
        reader: Its name and version.
        model: What was written.
        ours: Our logits of the same rows.
        answer: What it told, and its logits.
        tolerance: How far logits may be apart, in standard deviations of the logits of one place.

    Raises:
        ExportError: naming what differs.
    """
    told, logits = answer
    _same_texts(model, told["ids"], reader)
    _same_ends(model, set(told["ends"]), reader)
    letter = letter_of(model.tokenizer)
    begun = [*model.tokenizer.beginning_ids, *model.tokenizer.encode(letter).tolist()]
    if told["begun"] != begun:
        _refuse(f"the ids {begun} for {letter!r} with what is put before every text", str(told["begun"]), reader)
    if told.get("unfit"):
        _refuse("all weights in their places", f"{len(told['unfit'])} that are not: {told['unfit'][0]}", reader)
    if told.get("chat_template") != model.chat_template:
        _refuse("the chat template as it was", "another", reader)
    return close(reader, ours, logits[:, : ours.shape[1]], tolerance, texts=len(told["ids"]))


def close(reader: str, ours: np.ndarray, theirs: np.ndarray, tolerance: float, *, texts: int) -> Comparison:
    """Compare logits.

    Raises:
        ExportError: if they are further apart than `tolerance` standard deviations of the logits of one place.
    """
    difference, spread = float(np.abs(theirs - ours).max()), float(ours.std(axis=1).mean())
    if not difference <= tolerance * spread:  # also NaN
        came = f"{difference:.3g} (the logits of one place spread by {spread:.3g})"
        _refuse(f"logits at most {tolerance * spread:.3g} from ours", came, reader)
    return Comparison(reader=reader, difference=difference, spread=spread, tokens=len(ours), texts=texts)


def letter_of(tokenizer: TextTokenizer) -> str:
    """Some letter that a tokenizer knows."""
    return next((one for one in "aeiou " if not tokenizer.unknown_characters(one)), "") or _first_letter(tokenizer)


def _first_letter(tokenizer: TextTokenizer) -> str:
    return next(text for one in range(tokenizer.vocab_size) if (text := tokenizer.decode([one])))


def _same_texts(model: Outgoing, ids: Sequence[Sequence[int]], reader: str) -> None:
    for text, theirs in zip(encodable(model.tokenizer), ids, strict=True):
        ours = model.tokenizer.encode(text).tolist()
        if ours != list(theirs):
            place = next((i for i, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), 0)
            came = f"{list(theirs)[place : place + 6]} instead of {ours[place : place + 6]} from token {place} on"
            _refuse(f"the ids of {text!r}", came, reader)


def _same_ends(model: Outgoing, theirs: set[int], reader: str) -> None:
    if missing := sorted(set(model.end_ids) - theirs):
        _refuse("every id that ends a text known as such", f"not {missing}", reader)


def _refuse(expected: str, came: str, reader: str) -> NoReturn:
    remedy = "it has been removed; please report it, with the model's config.json"
    raise ExportError(f"{expected} when what was written was read again by {reader}", came=came, remedy=remedy)
