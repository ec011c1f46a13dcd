"""Inspection: what a trained model does with a text, token by token, by the functions that trained it.

    reading → surprise → scored_text → answers → passages → heat_map → attention_maps      (reading order)

In: a model, its tokenizer, texts.  Out: figures and pictures.  Used by: train, the report, the command line.
Read next: reading.py.
"""

from pellucid.inspection.answers import answer_costs, score_answers
from pellucid.inspection.attention_maps import AttentionMap, attention_maps, habit
from pellucid.inspection.heat_map import HEAT_STYLE, heat_map, legend
from pellucid.inspection.passages import Passage, characters_of, chosen_passages
from pellucid.inspection.reading import reading
from pellucid.inspection.scored_text import Parts, ScoredDocument, TextScore, score_documents, score_passages
from pellucid.inspection.surprise import Predictions, default_stride, predictions, surprises

__all__ = [
    "HEAT_STYLE",
    "AttentionMap",
    "Parts",
    "Passage",
    "Predictions",
    "ScoredDocument",
    "TextScore",
    "answer_costs",
    "attention_maps",
    "characters_of",
    "chosen_passages",
    "default_stride",
    "habit",
    "heat_map",
    "legend",
    "predictions",
    "reading",
    "score_answers",
    "score_documents",
    "score_passages",
    "surprises",
]
