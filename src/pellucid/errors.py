"""The errors of pellucid: every one is a sentence that says what was expected, what came, and what to do.

    PellucidError                    anything this package raises on purpose
    ├── UserError                    the user can mend it: exit code 2, one sentence, no traceback
    │   ├── ConfigError              a model or training setting that cannot work
    │   ├── ShapeError               a tensor of the wrong shape, a position outside a table
    │   ├── DataError                a text or token file that cannot be used
    │   ├── TokenizerError           text the tokenizer cannot encode, or a tokenizer that does not fit
    │   ├── RunFolderError           a run folder that is missing, in use, incomplete or of another run
    │   ├── ModelFileError           weights or a model description that cannot be read safely
    │   └── GenerationError          a sampling setting or a prompt that cannot be served
    ├── ExportError                  what was written is not the model, seen when it was read again; it is removed
    └── TrainingStopped              a run that ended early on purpose, with everything saved

In: words.  Out: exceptions.  Used by: every room.  Read next: shapes.py.
"""


class PellucidError(Exception):
    """Anything this package raises on purpose.

    Args:
        expected: What would have worked, as a noun phrase: "num_heads to divide d_model".
        came: What came instead, with its numbers: "d_model=130, num_heads=4".
        remedy: What to do, as an imperative: "choose d_model=128 or set d_head".

    Example:
        >>> str(PellucidError("a whole number of steps", came="2.5", remedy="give 2 or 3"))
        'Expected a whole number of steps, but got 2.5: give 2 or 3.'
    """

    def __init__(self, expected: str, *, came: str, remedy: str) -> None:
        self.expected, self.came, self.remedy = expected, came, remedy
        super().__init__(f"Expected {expected}, but got {came}: {remedy}.")


class UserError(PellucidError, ValueError):
    """The user can mend it. The command line prints the sentence alone and exits with 2."""


class ConfigError(UserError):
    """A model or training setting that cannot work."""


class ShapeError(UserError):
    """A tensor of the wrong shape, or a position outside a table."""


class DataError(UserError):
    """A text or token file that cannot be used."""


class TokenizerError(UserError):
    """Text that a tokenizer cannot encode, or a tokenizer that does not fit its model."""


class RunFolderError(UserError):
    """A run folder that is missing, in use, incomplete, or that belongs to another run."""


class ModelFileError(UserError):
    """Weights or a model description that cannot be read, or not safely."""


class GenerationError(UserError):
    """A sampling setting, or a prompt, that cannot be served."""


class ExportError(PellucidError):
    """What was written is not the model, as reading it again showed; it has been removed."""


class TrainingStopped(PellucidError):
    """A run that ended early on purpose, with everything saved."""


def shown(text: str) -> str:
    """A text from a file, for a sentence: quoted; of one that a damaged file made a page long, the beginning.

    Example:
        >>> shown("blk.0")
        "'blk.0'"
    """
    return repr(text if len(text) <= 100 else text[:100] + "…")  # as much as a terminal's line or two
