"""A model handed on: written under a temporary name, read again by whoever is here, compared, and then named.

In: a model, its tokenizer, a path.  Out: files, and what was compared.  Used by: the command line.
Read next: reach.py.
"""

import importlib.metadata
import importlib.util
import math
import os
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from pellucid.convert.awkward import encodable
from pellucid.convert.beside_weights import read_chat_template, read_end_ids
from pellucid.convert.huggingface import read_hugging_face
from pellucid.convert.huggingface_description import describe
from pellucid.convert.huggingface_writing import with_family_for_its_tokenizer, write_hugging_face
from pellucid.convert.outgoing import NUMBER_TYPES, Outgoing, converted
from pellucid.convert.proof import (
    OURSELVES,
    Comparison,
    Passage,
    Read,
    ask,
    close,
    compared,
    letter_of,
    logits_of,
    prove_here,
)
from pellucid.disk import force_to_disk
from pellucid.errors import ModelFileError
from pellucid.nn import TransformerLM
from pellucid.text import load_tokenizer

UNFINISHED = ".unfinished-"
"""How names begin of what is not yet what it is to be called."""

SUMMATION = 1e-3
"""How far the logits of another program may be from ours, in standard deviations of the logits of one place: ten times
what other orders of summation come to in 30 layers of float32; a wrong theta comes to hundreds of times that."""

NEGLIGIBLE = 1e-3
"""Nats that rows without a token may take from those with one, in a program that does not know to leave them out."""

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Exported:
    """What was written."""

    path: Path
    family: str
    """What the files say that the model is."""
    number_type: str
    files: tuple[str, ...]
    num_bytes: int
    comparisons: tuple[Comparison, ...]
    """By whom it was read again, ourselves first: beside the model as it was, the others beside that."""
    passage: str
    """Where the text is from that logits were compared on."""
    notes: tuple[str, ...]
    """What else a person should know."""


def export_hugging_face(
    model: TransformerLM,
    outgoing: Outgoing,
    out: Path,
    passage: Passage,
    *,
    number_type: str | None = None,
    tell: Tell = lambda stage: None,
) -> Exported:
    """Write a Hugging Face folder, and prove it.

    Args:
        model: The model.
        outgoing: The same with its tokenizer.
        out: The folder; there must be nothing yet.
        passage: A text to compare logits on.
        number_type: float32, bfloat16 or float16. Default: the one the weights have.
        tell: Called with what is being done.

    Raises:
        ModelFileError: if no family can be this model, or something is at `out`.
        ExportError: if what was written is not the model; nothing is left of it.
    """
    number_type = number_type or outgoing.number_type
    describe(outgoing.config)  # before anything is written, and any memory taken
    outgoing, notes = spared(model, outgoing, passage)
    outgoing = with_family_for_its_tokenizer(outgoing)
    family, _ = describe(outgoing.config)
    with unfinished(out) as folder:
        tell(f"Writing it as {family.name} in {number_type}")
        files = folder / "files"
        files.mkdir()
        write_hugging_face(files, outgoing, number_type)
        tell("Reading it again")
        read = _read(files)
        dtype = NUMBER_TYPES[number_type]
        prove_here(read, outgoing, lambda name: converted(name, outgoing.tensors[name], dtype))
        rows, num_ids = passage.rows(outgoing.config.context_length, outgoing.config.vocab_size), num_tokens(outgoing)
        logits = logits_of(read.model, rows, num_ids)
        del read
        exact = SUMMATION if number_type == outgoing.number_type else math.inf
        texts = len(encodable(outgoing.tokenizer))
        comparisons = [close(OURSELVES, logits_of(model, rows, num_ids), logits, exact, texts=texts)]
        if importlib.util.find_spec("transformers") is None:
            notes = (*notes, "transformers is not installed here, so only pellucid has read it again.")
        else:
            tell("Having transformers read it")
            reader = f"transformers {importlib.metadata.version('transformers')}"
            answer = ask("in_transformers.py", files, question(outgoing, rows), folder)
            if isinstance(answer, str):
                notes = (*notes, f"{reader} could not compare it: {answer}.")
            else:
                comparisons.append(compared(reader, outgoing, logits, answer, SUMMATION))
        written = tuple(sorted(path.name for path in files.iterdir()))
        num_bytes = sum(path.stat().st_size for path in files.iterdir())
        publish(files, out)
    return Exported(
        path=out,
        family=family.name,
        number_type=number_type,
        files=written,
        num_bytes=num_bytes,
        comparisons=tuple(comparisons),
        passage=passage.what,
        notes=notes,
    )


def spared(model: TransformerLM, outgoing: Outgoing, passage: Passage) -> tuple[Outgoing, tuple[str, ...]]:
    """The model as others can have it, who do not know which rows of the vocabulary are no token.

    Rows that would take some of the probability, because nothing has taught the model not to write them, are left out.
    """
    config = outgoing.config
    if not config.num_unused_ids:
        return outgoing, ()
    rows = passage.rows(config.context_length, config.vocab_size)
    weight = outgoing.tensors.get("lm_head.weight", outgoing.tensors["token_embedding.weight"]).float()
    taken, num_ids = 0.0, num_tokens(outgoing)
    with torch.no_grad():
        for row in rows:
            logits = model.hidden_states(torch.tensor([row]))[0].float() @ weight.T
            taken = max(taken, float((logits.logsumexp(-1) - logits[:, :num_ids].logsumexp(-1)).max()))
    if taken <= NEGLIGIBLE:
        return outgoing, (f"{config.num_unused_ids:,} rows of the vocabulary are no token, and are kept as they are.",)
    said = f"{config.num_unused_ids:,} rows of the vocabulary that are no token are left out: others would write them."
    return outgoing.without_unused_rows(), (said,)


def num_tokens(outgoing: Outgoing) -> int:
    """How many ids are tokens."""
    return outgoing.config.vocab_size - outgoing.config.num_unused_ids


def question(outgoing: Outgoing, rows: list[list[int]]) -> dict[str, object]:
    """What another program is asked about the files."""
    return {"rows": rows, "texts": encodable(outgoing.tokenizer), "letter": letter_of(outgoing.tokenizer)}


@contextmanager
def unfinished(out: Path) -> Generator[Path]:
    """A folder to write in, beside the path it is for; afterwards it is gone, and so are those of killed processes.

    Raises:
        ModelFileError: if something is at the path already.
    """
    refuse_existing(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    for left in out.parent.glob(f"{UNFINISHED}*-{out.name}"):
        if not _is_alive(left.name.removeprefix(UNFINISHED).partition("-")[0]):
            shutil.rmtree(left, ignore_errors=True)
    folder = out.with_name(f"{UNFINISHED}{os.getpid()}-{out.name}")
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(made: Path, out: Path) -> None:
    """Give what was written its name, after it is safe on the disk."""
    for path in [*sorted(made.rglob("*")), made] if made.is_dir() else [made]:
        force_to_disk(path)
    refuse_existing(out)
    made.rename(out)
    force_to_disk(out.parent)


def refuse_existing(out: Path) -> None:
    """Say so if something is at a path already."""
    if os.path.lexists(out):
        kind = "a folder" if out.is_dir() else "a file"
        raise ModelFileError(
            f"nothing yet at '{out}'", came=f"{kind} that is there", remedy="remove it, or give another --out"
        )


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True


def _read(folder: Path) -> Read:
    tokenizer = load_tokenizer(folder)
    return Read(
        model=read_hugging_face(folder, num_ids=tokenizer.vocab_size),
        tokenizer=tokenizer,
        end_ids=read_end_ids(folder, tokenizer.special_tokens),
        chat_template=read_chat_template(folder),
    )
