"""What a model can be exported to, known from its description alone: training says it before it begins.

In: a `ModelConfig`, the kind of its tokenizer.  Out: `Reach`.  Used by: train.  Read next: ../loading.py.
"""

from dataclasses import dataclass

from pellucid.convert.gguf_description import describe_gguf
from pellucid.convert.gguf_tokens import CHARACTERS
from pellucid.convert.huggingface_description import describe
from pellucid.errors import ModelFileError
from pellucid.model_config import ModelConfig


@dataclass(frozen=True, kw_only=True)
class Reach:
    """Where a model can go."""

    hugging_face: str | None
    """Why it cannot be a Hugging Face folder; None if it can."""
    gguf: str | None
    """Why it cannot be a GGUF file; None if it can."""
    sentence: str
    """Both in a sentence."""


def reaches(config: ModelConfig, tokenizer_kind: str) -> Reach:
    """What a model can be exported to.

    Args:
        config: What it is.
        tokenizer_kind: characters, bpe or other: `TextTokenizer.kind`.

    Example:
        >>> reaches(ModelConfig(qk_norm="head"), "bpe").sentence
        'It can be exported to Hugging Face and GGUF (Qwen3).'
        >>> reaches(ModelConfig(qk_norm="head"), "characters").sentence
        'It can be exported to Hugging Face (Qwen3); not to GGUF: its tokens are characters.'
    """
    family, no_folder, no_file = "", None, CHARACTERS if tokenizer_kind == "characters" else None
    try:
        family = describe(config)[0].name
    except ModelFileError as error:
        no_folder = error.came
    try:
        described = describe_gguf(config)
        family = family or described.family.weights.name.removesuffix(" in GGUF")
    except ModelFileError as error:
        no_file = no_file or error.came
    if no_folder and no_file:
        sentence = f"It cannot be exported: {no_folder}."
    elif no_folder:
        sentence = f"It can be exported to GGUF ({family}); not to Hugging Face: {no_folder}."
    elif no_file:
        sentence = f"It can be exported to Hugging Face ({family}); not to GGUF: {no_file}."
    else:
        sentence = f"It can be exported to Hugging Face and GGUF ({family})."
    return Reach(hugging_face=no_folder, gguf=no_file, sentence=sentence)
