"""Inspection: what a trained model does with a text, token by token, by the functions that trained it.

    reading → surprise      (reading order)

In: a model, its tokenizer, texts.  Out: figures and pictures.  Used by: train, the report, the command line.
Read next: reading.py.
"""

from pellucid.inspection.reading import reading
from pellucid.inspection.surprise import Predictions, default_stride, predictions, surprises

__all__ = ["Predictions", "default_stride", "predictions", "reading", "surprises"]
