"""A tiny run folder to be measured."""

from pellucid.text import train_byte_pairs
from tests.saved_run import save_run

TEXT = ["The value of the expression is evaluated; a statement may be compound, and so may be a value. " * 9]


def make_run(path):
    """Write it; gives its model."""
    sizes = {"d_model": 64, "num_layers": 2, "context_length": 64, "d_ff": 96}
    return save_run(path, train_byte_pairs(TEXT, 280), **sizes)
