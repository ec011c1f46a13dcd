"""Somebody else's model as a run: a folder that every verb opens, and that training goes on from.

In: a `ForeignModel`, a path.  Out: a run folder.  Used by: the command line.  Read next: ../loading.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pellucid.checkpoint import RunFolder, sha256_of, write_model
from pellucid.checkpoint.durable import in_a_sentence, write_durably
from pellucid.convert.beside_weights import TEMPLATE
from pellucid.convert.foreign_model import ForeignModel
from pellucid.convert.unfinished import publish, unfinished


def import_model(foreign: ForeignModel, source: Path, out: Path, facts: dict[str, Any]) -> RunFolder:
    """Write a model as a run folder, all or nothing: it has its name when it is whole.

    Weights keep the number types they are kept in, to the last bit.

    Args:
        foreign: The model.
        source: Where it was opened.
        out: A path where nothing is yet.
        facts: More for run.json.

    Raises:
        ModelFileError: if something is there, or the weights are not the model's.
        TokenizerError: if it has no tokenizer.
        RunFolderError: if the disk refuses.
    """
    tokenizer = foreign.required_tokenizer()
    with in_a_sentence(out), unfinished(out) as folder:
        weights = [{"path": str(path.absolute()), "sha256": sha256_of(path)} for path in foreign.files]
        told = {
            **facts,
            "imported": {"kind": foreign.kind, "path": str(source.absolute()), "weights": weights},
            "tokenizer": {
                "kind": tokenizer.kind,
                "vocab_size": tokenizer.vocab_size,
                "fingerprint": tokenizer.fingerprint,
            },
            "end_ids": sorted(foreign.end_ids),
        }
        run = RunFolder.create(folder, told)
        tokenizer.save(run.tokenizer_path)
        if foreign.chat_template is not None:
            write_durably(folder / TEMPLATE, foreign.chat_template.encode("utf-8"))
        write_model(folder, foreign.tensors(), foreign.config)
        publish(folder, out)
    return RunFolder.open(out)
