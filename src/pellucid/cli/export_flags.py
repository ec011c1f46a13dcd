"""The flags of `pellucid export`.

In: words.  Out: `ExportFlags`.  Used by: export.py, export_run.py.  Read next: export_run.py.
"""

from dataclasses import dataclass
from typing import Literal

import tyro


@dataclass(kw_only=True)
class ExportFlags:
    """Write a model so that other programs open it: read again and compared before it gets its name."""

    model: tyro.conf.Positional[str]
    """A run's folder, a Hugging Face folder, or a GGUF file."""
    format: Literal["hf", "gguf"] = "hf"
    """hf: a folder for transformers, vLLM and all that reads Hugging Face's; gguf: a file for llama.cpp and Ollama."""
    out: str
    """The folder, or for gguf the file, to write. There must be nothing yet."""
    dtype: Literal["float32", "bfloat16", "float16"] | None = None
    """The number type to store weights in. Default: the one they have."""
    quantize: Literal["q8_0", "q4_0"] | None = None
    """gguf: whole numbers of 8 or 4 bits that share a scale among 32, a quarter or an eighth of the size."""
    json: bool = False
    """Say what was written and compared as a JSON object."""
