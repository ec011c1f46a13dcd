"""Other people's names and files; the only room that knows them.

Read the files in this order: names, families, huggingface_config, beside_weights, huggingface; gguf_types, gguf_file,
gguf_vocabulary, gguf_families, gguf_config, gguf.

In: weights as others write them.  Out: weights as ours.  Used by: loading, cs336.  Read next: names.py.
"""

from pellucid.convert.beside_weights import read_chat_template, read_end_ids
from pellucid.convert.families import FAMILIES, HuggingFaceFamily
from pellucid.convert.gguf import read_gguf
from pellucid.convert.huggingface import read_hugging_face, read_hugging_face_config
from pellucid.convert.huggingface_config import family_of, to_model_config
from pellucid.convert.names import (
    CS336,
    Family,
    Row,
    halves_to_neighbours,
    names_by_address,
    neighbours_to_halves,
    one_by_one,
    to_ours,
    to_theirs,
)
from pellucid.convert.pickled import read_pickled

__all__ = [
    "CS336",
    "FAMILIES",
    "Family",
    "HuggingFaceFamily",
    "Row",
    "family_of",
    "halves_to_neighbours",
    "names_by_address",
    "neighbours_to_halves",
    "one_by_one",
    "read_chat_template",
    "read_end_ids",
    "read_gguf",
    "read_hugging_face",
    "read_hugging_face_config",
    "read_pickled",
    "to_model_config",
    "to_ours",
    "to_theirs",
]
