"""A tokenizer from wherever one is: a tokenizer.json, a folder that has one, a GGUF file.

In: a path.  Out: a `TextTokenizer`.  Used by: train, the command line.  Read next: gguf_vocabulary.py.
"""

from __future__ import annotations

from pathlib import Path

from pellucid.convert.gguf_file import GgufFile
from pellucid.convert.gguf_vocabulary import read_vocabulary
from pellucid.text import TextTokenizer, load_tokenizer


def load_any_tokenizer(path: str | Path) -> TextTokenizer:
    """The tokenizer of any kind of model, or one that stands alone.

    Raises:
        TokenizerError: if there is none.
        ModelFileError: if a GGUF file is damaged, or its vocabulary is of a kind that is not known here.
    """
    path = Path(path)
    if path.suffix.lower() == ".gguf" and path.is_file():
        return read_vocabulary(GgufFile(path).metadata, f"'{path}'")
    return load_tokenizer(path)
