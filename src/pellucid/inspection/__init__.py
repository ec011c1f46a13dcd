"""Inspection: what a trained model does with a text, token by token, by the functions that trained it.

    reading → surprise → attention_maps      (reading order)

In: a model, its tokenizer, texts.  Out: figures and pictures.  Used by: train, the report, the command line.
Read next: reading.py.
"""

from pellucid.inspection.attention_maps import AttentionMap, attention_maps, habit
from pellucid.inspection.reading import reading
from pellucid.inspection.surprise import Predictions, default_stride, predictions, surprises

__all__ = [
    "AttentionMap",
    "Predictions",
    "attention_maps",
    "default_stride",
    "habit",
    "predictions",
    "reading",
    "surprises",
]
