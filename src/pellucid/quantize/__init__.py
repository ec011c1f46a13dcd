"""Weights in fewer bits.

Read the files in this order: int8, precision.

In: a model.  Out: the same model, smaller.  Used by: loading, generate, bench.  Read next: int8.py.
"""

from pellucid.quantize.int8 import Int8Embedding, Int8Linear, quantize_model, quantize_rows
from pellucid.quantize.precision import computes_bfloat16, require_precision, with_precision

__all__ = [
    "Int8Embedding",
    "Int8Linear",
    "computes_bfloat16",
    "quantize_model",
    "quantize_rows",
    "require_precision",
    "with_precision",
]
