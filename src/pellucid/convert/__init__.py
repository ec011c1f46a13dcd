"""Other people's names and files; the only room that knows them.

Read the files in this order: names, families, huggingface_config, beside_weights, filling, foreign_model, huggingface;
gguf_types, gguf_file, gguf_vocabulary, gguf_families, gguf_config, gguf. And the way out: meaning,
huggingface_description, outgoing, word_rules, huggingface_writing, gguf_description, gguf_tokens, gguf_writing,
awkward, in_transformers, in_llama_cpp, proof, unfinished, modelfile, export, reach.

In: weights as others write them, or as we have them.  Out: the other.  Used by: loading, train, cs336, cli.
Read next: names.py.
"""

from pellucid.convert.awkward import AWKWARD, encodable
from pellucid.convert.beside_weights import read_chat_template, read_end_ids
from pellucid.convert.export import Exported, export_gguf, export_hugging_face
from pellucid.convert.families import FAMILIES, HuggingFaceFamily
from pellucid.convert.foreign_model import ForeignModel
from pellucid.convert.gguf import open_gguf, read_gguf
from pellucid.convert.huggingface import open_hugging_face, read_hugging_face, read_hugging_face_config
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
from pellucid.convert.outgoing import Outgoing
from pellucid.convert.peft import write_adapter
from pellucid.convert.pickled import read_pickled
from pellucid.convert.proof import Comparison, Passage
from pellucid.convert.reach import Reach, reaches
from pellucid.convert.unfinished import refuse_existing

__all__ = [
    "AWKWARD",
    "CS336",
    "FAMILIES",
    "Comparison",
    "Exported",
    "Family",
    "ForeignModel",
    "HuggingFaceFamily",
    "Outgoing",
    "Passage",
    "Reach",
    "Row",
    "encodable",
    "export_gguf",
    "export_hugging_face",
    "family_of",
    "halves_to_neighbours",
    "names_by_address",
    "neighbours_to_halves",
    "one_by_one",
    "open_gguf",
    "open_hugging_face",
    "reaches",
    "read_chat_template",
    "read_end_ids",
    "read_gguf",
    "read_hugging_face",
    "read_hugging_face_config",
    "read_pickled",
    "refuse_existing",
    "to_model_config",
    "to_ours",
    "to_theirs",
    "write_adapter",
]
