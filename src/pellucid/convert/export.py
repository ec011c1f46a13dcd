"""A model handed on: written under a temporary name, read again by whoever is here, compared, and then named.

In: a model, its tokenizer, a path.  Out: files, and what was compared.  Used by: the command line.
Read next: reach.py.
"""

import importlib.metadata
import importlib.util
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pellucid.convert.awkward import encodable
from pellucid.convert.beside_weights import read_chat_template, read_end_ids
from pellucid.convert.gguf import read_gguf
from pellucid.convert.gguf_description import describe_gguf
from pellucid.convert.gguf_tokens import describe_tokens
from pellucid.convert.gguf_writing import expected_tensors, gguf_library, narrowed, write_gguf
from pellucid.convert.huggingface import read_hugging_face
from pellucid.convert.huggingface_description import describe
from pellucid.convert.huggingface_writing import with_family_for_its_tokenizer, write_hugging_face
from pellucid.convert.modelfile import modelfile
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
from pellucid.convert.unfinished import publish, unfinished
from pellucid.nn import TransformerLM
from pellucid.text import load_tokenizer

SUMMATION = 1e-3
"""How far the logits of transformers may be from ours, in standard deviations of the logits of one place: ten times
what other orders of summation come to in 30 layers of float32; a wrong theta comes to hundreds of times that."""

LLAMA_CPP = {"float32": 0.01, "float16": 0.03, "bfloat16": 0.15, "q8_0": 0.5, "q4_0": 0.5}
"""The same for llama.cpp, four times what was seen with random weights: it looks GELU up in a table of 16-bit numbers,
and rounds what it multiplies by a matrix to the type of the matrix, to 8 bits if that has fewer."""

NEGLIGIBLE = 1e-3
"""Nats that rows without a token may take from those with one, in a program that does not know to leave them out."""

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """Another program that reads what was written."""

    package: str
    """What is imported, and has to be installed."""
    distribution: str
    """What pip calls it."""
    program: str
    """The file here that asks it."""


TRANSFORMERS = Peer(package="transformers", distribution="transformers", program="in_transformers.py")
LLAMA_CPP_PYTHON = Peer(package="llama_cpp", distribution="llama-cpp-python", program="in_llama_cpp.py")


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
    dtype = NUMBER_TYPES[number_type]
    with unfinished(out) as folder:
        tell(f"Writing it as {family.name} in {number_type}")
        files = folder / "files"
        files.mkdir()
        write_hugging_face(files, outgoing, number_type)
        proof = _Proof(model, outgoing, passage, number_type == outgoing.number_type, tell)
        proof.read_here(_read(files), lambda name: converted(name, outgoing.tensors[name], dtype))
        proof.read_by(TRANSFORMERS, files, folder, SUMMATION)
        written = tuple(sorted(path.name for path in files.iterdir()))
        num_bytes = sum(path.stat().st_size for path in files.iterdir())
        publish(files, out)
    facts = {"family": family.name, "number_type": number_type, "files": written, "num_bytes": num_bytes}
    return proof.exported(out, notes, **facts)


def export_gguf(
    model: TransformerLM,
    outgoing: Outgoing,
    out: Path,
    passage: Passage,
    *,
    kind: str | None = None,
    tell: Tell = lambda stage: None,
) -> Exported:
    """Write a GGUF file, with a Modelfile beside it, and prove it.

    Args:
        model: The model.
        outgoing: The same with its tokenizer.
        out: The file; there must be nothing yet.
        passage: A text to compare logits on.
        kind: float32, bfloat16, float16, q8_0 or q4_0. Default: the type the weights have.
        tell: Called with what is being done.

    Raises:
        ModelFileError: if llama.cpp has no such model or tokenizer, or something is at `out`.
        ExportError: if what was written is not the model; nothing is left of it.
        UserError: if the gguf library is not here.
    """
    kind = kind or outgoing.number_type
    family = describe_gguf(outgoing.config).family
    describe_tokens(outgoing)
    gguf_library()
    outgoing, notes = spared(model, outgoing, passage)
    with unfinished(out) as folder:
        tell(f"Writing it as {family.architecture} in {kind}")
        file = folder / out.name
        write_gguf(file, outgoing, kind)
        read, tokenizer, end_ids, template = read_gguf(file)
        proof = _Proof(model, outgoing, passage, kind == outgoing.number_type, tell)
        expected = expected_tensors(outgoing, kind)
        proof.read_here(
            Read(model=read, tokenizer=tokenizer, end_ids=end_ids, chat_template=template), expected.__getitem__
        )
        del read, expected
        proof.read_by(LLAMA_CPP_PYTHON, file, folder, LLAMA_CPP[kind])
        beside = out.with_name("Modelfile")
        beside = out.with_name(f"{out.stem}.Modelfile") if beside.exists() else beside
        (folder / "Modelfile").write_text(modelfile(outgoing, out.name), encoding="utf-8", newline="\n")
        num_bytes = file.stat().st_size
        publish(folder / "Modelfile", beside)
        publish(file, out)
    facts = {"family": family.architecture, "number_type": kind, "num_bytes": num_bytes}
    return proof.exported(out, (*notes, *narrowed(outgoing, kind)), files=(out.name, beside.name), **facts)


class _Proof:
    """Has files read again, and keeps what came of it."""

    def __init__(self, model: TransformerLM, outgoing: Outgoing, passage: Passage, is_exact: bool, tell: Tell) -> None:
        self.model, self.outgoing, self.is_exact, self.tell = model, outgoing, is_exact, tell
        self.passage = passage
        self.rows = passage.rows(outgoing.config.context_length, outgoing.config.vocab_size)
        self.comparisons: list[Comparison] = []
        self.notes: list[str] = []
        self.logits = np.zeros(0)

    def exported(self, path: Path, notes: tuple[str, ...], **facts: Any) -> Exported:
        """What was written, with what came of reading it again."""
        told = {"comparisons": tuple(self.comparisons), "passage": self.passage.what, "notes": (*notes, *self.notes)}
        return Exported(path=path, **told, **facts)

    def read_here(self, read: Read, expected: Callable[[str], Tensor]) -> None:
        self.tell("Reading it again")
        prove_here(read, self.outgoing, expected)
        self.logits, ours = (logits_of(one, self.rows, num_tokens(self.outgoing)) for one in (read.model, self.model))
        texts = len(encodable(self.outgoing.tokenizer))
        exact = SUMMATION if self.is_exact else math.inf
        self.comparisons.append(close(OURSELVES, ours, self.logits, exact, texts=texts))

    def read_by(self, peer: Peer, path: Path, folder: Path, tolerance: float) -> None:
        if importlib.util.find_spec(peer.package) is None:
            self.notes.append(f"{peer.distribution} is not installed here, so only pellucid has read it again.")
            return
        reader = f"{peer.distribution} {importlib.metadata.version(peer.distribution)}"
        self.tell(f"Having {peer.distribution} read it")
        question = {"rows": self.rows, "texts": encodable(self.outgoing.tokenizer)}
        answer = ask(peer.program, path, {**question, "letter": letter_of(self.outgoing.tokenizer)}, folder)
        if isinstance(answer, str):
            self.notes.append(f"{reader} could not compare it: {answer}.")
        else:
            self.comparisons.append(compared(reader, self.outgoing, self.logits, answer, tolerance))


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


def _read(folder: Path) -> Read:
    tokenizer = load_tokenizer(folder)
    return Read(
        model=read_hugging_face(folder, num_ids=tokenizer.vocab_size),
        tokenizer=tokenizer,
        end_ids=read_end_ids(folder, tokenizer.special_tokens),
        chat_template=read_chat_template(folder),
    )
