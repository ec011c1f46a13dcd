"""`pellucid export`, carried out: opens the model, has it written and proved, and says what came out.

In: `ExportFlags`.  Out: files, lines, JSON.  Used by: export.py.  Read next: ../convert/export.py.
"""

import sys
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import pellucid
from pellucid.checkpoint import RunFolder, read_config
from pellucid.cli.export_flags import ExportFlags
from pellucid.cli.printable import printable, printable_json
from pellucid.cli.quoting import one_line
from pellucid.convert import (
    Comparison,
    Exported,
    Outgoing,
    Passage,
    encodable,
    export_gguf,
    export_hugging_face,
    refuse_existing,
)
from pellucid.convert.huggingface_description import describe
from pellucid.convert.proof import MOST_TOKENS
from pellucid.data import builtin_corpus
from pellucid.errors import DataError, UserError
from pellucid.loading import Loaded
from pellucid.pages.quantities import counted, size
from pellucid.train.material import reopen_material

NAME_CELLS = 200
CORPUS_CHARACTERS = 8_000  # some 2,000 tokens, of which 512 are compared


def carry_out(flags: ExportFlags) -> None:
    """Write, prove, tell."""
    if flags.format == "hf" and flags.quantize:
        raise UserError("--quantize with --format gguf", came="--format hf", remedy="choose --dtype bfloat16 for hf")
    if flags.dtype and flags.quantize:
        raise UserError("--dtype or --quantize", came="both", remedy="leave one of them out")
    out = Path(flags.out)
    if flags.format == "gguf" and out.suffix.lower() != ".gguf":
        raise UserError("a name that ends in .gguf after --out", came=f"'{out}'", remedy=f"call it {out.name}.gguf")
    if flags.format == "hf" and out.suffix.lower() == ".gguf":
        raise UserError("a folder after --out", came=f"'{out}'", remedy="say --format gguf, or give another name")
    refuse_existing(out)
    _refuse_own_parts(Path(flags.model))
    loaded = pellucid.load(flags.model)
    outgoing = Outgoing.of(
        loaded.model,
        loaded.tokenizer,
        name=out.stem,
        end_ids=loaded.end_ids,
        chat_template=loaded.chat_template,
    )
    passage = passage_of(loaded)
    where, tell = (loaded.model, outgoing, out, passage), _teller(flags)
    if flags.format == "hf":
        exported = export_hugging_face(*where, number_type=flags.dtype, tell=tell)
    else:
        exported = export_gguf(*where, kind=flags.quantize or flags.dtype, tell=tell)
    if flags.json:
        print(printable_json(as_json(exported)))
        return
    for line in lines(exported):
        print(printable(line))


def passage_of(loaded: Loaded) -> Passage:
    """A text to compare logits on: what the run has held out, or else Python's own documentation."""
    held_out = _held_out(loaded)
    if held_out is not None and len(held_out):
        return Passage(held_out.tolist(), "the run's held-out text")
    try:
        texts = [piece.text for piece in islice(builtin_corpus().pieces(), 4)]  # 4: of thousands of characters each
    except DataError:
        texts = ["The quick brown fox jumps over the lazy dog. " * 50]
    (text,) = encodable(loaded.tokenizer, ["".join(texts)[:CORPUS_CHARACTERS]]) or [""]
    ids = [*loaded.tokenizer.beginning_ids, *loaded.tokenizer.encode(text).tolist()]
    if len(ids) < MOST_TOKENS // 8:  # a vocabulary of other letters: any of its tokens, in turn
        return Passage([one % loaded.tokenizer.vocab_size for one in range(MOST_TOKENS)], "all its tokens in turn")
    return Passage(ids, "Python's documentation")


def _held_out(loaded: Loaded) -> np.ndarray | None:
    if loaded.source is None or not (loaded.source / "run.json").exists():
        return None
    folder = RunFolder.open(loaded.source)
    if not folder.tokens_path.is_dir() or not any(folder.tokens_path.iterdir()):
        return None
    try:
        pieces = reopen_material(folder.tokens_path, folder.tokenizer_path).data.held_out
    except UserError:  # damaged, or its prepared text has moved: another text serves as well
        return None
    return np.concatenate([piece.tokens for piece in pieces]) if pieces else None


def _refuse_own_parts(path: Path) -> None:
    """Say why before somebody's code is asked for that would be of no use."""
    if (path / "run.json").exists() and (path / "config.json").exists():
        config = read_config(path)
        if config.own_parts:
            describe(config)


def _teller(flags: ExportFlags):
    return lambda stage: None if flags.json else print(printable(f"{stage}."), file=sys.stderr, flush=True)


def lines(exported: Exported) -> list[str]:
    """What a person reads of it."""
    said = [_compared(one, exported) for one in exported.comparisons] + list(exported.notes)
    where = one_line(str(exported.path), NAME_CELLS)
    files = counted(len(exported.files), "file")
    if exported.path.suffix.lower() == ".gguf":
        how = f"llama.cpp opens it; so do pellucid and, with {exported.files[1]}, Ollama."
    else:
        how = f'AutoModelForCausalLM.from_pretrained("{where}") opens it; so does pellucid.'
    return [*said, f"Done: {where}, {files}, {size(exported.num_bytes)}. {how}"]


def _compared(one: Comparison, exported: Exported) -> str:
    texts = f"the same ids for {counted(one.texts, 'awkward text')}"
    if one is exported.comparisons[0]:
        rounded = f", rounded to {exported.number_type}, which moves logits by up to {one.difference:.1g}"
        how = rounded if one.difference else " to the last bit"
        return f"Equal: {one.reader} reads the same weights{how}, and {texts}."
    return (
        f"Equal: {one.reader} has logits within {one.difference:.1e} of ours (they spread by {one.spread:.2g}) on"
        f" {one.tokens} tokens of {exported.passage}, and {texts}."
    )


def as_json(exported: Exported) -> dict[str, Any]:
    """The same for machines."""
    return {
        "path": str(exported.path),
        "family": exported.family,
        "dtype": exported.number_type,
        "files": list(exported.files),
        "bytes": exported.num_bytes,
        "passage": exported.passage,
        "compared": [asdict(one) for one in exported.comparisons],
        "notes": list(exported.notes),
    }
