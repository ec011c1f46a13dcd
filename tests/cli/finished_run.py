"""The last event of a good run, and of others that differ from it."""

from pellucid.train import Finished

YARDSTICKS = {
    "chance": 6.0,
    "letters": 4.8,
    "best_ngram": 2.0,
    "best_ngram_name": "5-gram",
    "xz": 2.5,
    "note": "",
    "bytes_per_character": 1.2,
    "unseen": 1,
    "held_out_characters": (50, 50),
}
GOOD = {
    "completed": True,
    "step": 100,
    "steps": 100,
    "planned_steps": 100,
    "best_step": 100,
    "held_out": 1.8,
    "standard_error": 0.05,
    "held_out_even": 1.79,
    "held_out_odd": 1.81,
    "last_held_out": 1.8,
    "train": 1.6,
    "yardsticks": YARDSTICKS,
    "ngram_lead": 0.2,
    "ngram_lead_error": 0.01,
    "copied": "the cat",
    "usually_shared": "on the mat. ",
    "sample": "the cat sat on the mat",
    "context_length": 256,
    "d_model": 192,
    "epochs": 12.0,
    "minutes": 5.0,
    "seconds": 299.0,
    "training_seconds": 240.0,
    "out": "runs/a book",
}


def finished(**changes):
    """A good run, changed."""
    return Finished(**{**GOOD, **changes})
