"""A program of its own, with nothing of ours: opens a GGUF file with llama.cpp and writes down what it makes of it.

    python in_llama_cpp.py FILE REQUEST.json ANSWER        as in_transformers.py

In: a file and a request.  Out: two files.  Used by: proof, as a process.  Read next: proof.py.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

SMALLEST_CONTEXT = 64  # it takes no smaller ones without a word


def answer(path: str, request: dict[str, Any]) -> tuple[dict[str, Any], np.ndarray]:
    """What llama.cpp makes of a file."""
    library: Any = importlib.import_module("llama_cpp")
    length = max([SMALLEST_CONTEXT, *map(len, request["rows"])])
    # Keys and values as float32: by default they are rounded to 16 bits, whatever the weights are.
    exact = {"type_k": library.GGML_TYPE_F32, "type_v": library.GGML_TYPE_F32, "flash_attn": False}
    model = library.Llama(
        path, n_ctx=length, n_batch=length, n_ubatch=length, logits_all=True, verbose=False, n_gpu_layers=0, **exact
    )
    logits = []
    for row in request["rows"]:
        model.reset()
        model.eval(row)
        logits.append(np.array(model.scores[: len(row)], dtype=np.float32))
    vocabulary = library.llama_model_get_vocab(model.model)
    texts = [text.encode("utf-8") for text in request["texts"]]
    told = {
        "version": library.__version__,
        "ids": [model.tokenize(text, add_bos=False, special=False) for text in texts],
        "begun": model.tokenize(request["letter"].encode("utf-8"), add_bos=True, special=False),
        "ends": [one for one in range(model.n_vocab()) if library.llama_vocab_is_eog(vocabulary, one)],
        "chat_template": model.metadata.get("tokenizer.chat_template"),
    }
    return told, np.concatenate(logits)


def main(arguments: list[str]) -> None:
    """Run the program."""
    path, request, target = arguments
    told, logits = answer(path, json.loads(Path(request).read_text(encoding="utf-8")))
    np.save(f"{target}.npy", logits)
    Path(f"{target}.json").write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
