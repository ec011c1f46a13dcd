"""A program of its own, with nothing of ours: opens a folder with `transformers` and writes down what it makes of it.

    python in_transformers.py FOLDER REQUEST.json ANSWER

    REQUEST.json   {"rows": [[id, …], …], "texts": [str, …], "letter": str}
    ANSWER.json    version, unfit names, ids of the texts, and of the letter with what is put before every text
    ANSWER.npy     logits, float32

In: a folder and a request.  Out: two files.  Used by: proof, as a process.  Read next: in_llama_cpp.py.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch


def answer(folder: str, request: dict[str, Any]) -> tuple[dict[str, Any], np.ndarray]:
    """What `transformers` makes of a folder."""
    library: Any = importlib.import_module("transformers")
    tokenizer = library.AutoTokenizer.from_pretrained(folder)
    model, report = library.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True, attn_implementation="eager"
    )
    with torch.inference_mode():
        logits = [model(torch.tensor([row])).logits[0].numpy() for row in request["rows"]]
    ends = model.generation_config.eos_token_id
    unfit = [name for kind in ("missing_keys", "unexpected_keys", "mismatched_keys") for name in report[kind]]
    told = {
        "version": library.__version__,
        "unfit": [str(name) for name in unfit],
        "ids": [tokenizer.encode(text, add_special_tokens=False) for text in request["texts"]],
        "begun": tokenizer.encode(request["letter"], add_special_tokens=True),
        "ends": ends if isinstance(ends, list) else [ends],
        "chat_template": tokenizer.chat_template,
    }
    return told, np.concatenate(logits)


def main(arguments: list[str]) -> None:
    """Run the program."""
    folder, request, target = arguments
    told, logits = answer(folder, json.loads(Path(request).read_text(encoding="utf-8")))
    np.save(f"{target}.npy", logits)
    Path(f"{target}.json").write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
