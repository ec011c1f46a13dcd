"""Parts of one's own: classes that a person wrote, in the place of ours.

Who has them run is decided elsewhere (own_parts.py reads files; this room reads none): what is not in `CLASSES` by then
is not built.

In: the name of a part, what its constructor takes.  Out: the part.  Used by: block.  Read next: block.py.
"""

from torch import nn

from pellucid.errors import ModelFileError

CLASSES: dict[str, type[nn.Module]] = {}
"""By name, file.py:NAME@SHA256: the classes whose code this process was told to run."""


def own_part(name: str, *arguments: object) -> nn.Module:
    """The part of that name, built from what the constructor of ours takes in its place.

    Raises:
        ModelFileError: if nobody has agreed to its code being run.
    """
    if name in CLASSES:
        return CLASSES[name](*arguments)
    raise ModelFileError(
        "your consent to run the code that this model was made with",
        came=f"none for {name.partition('@')[0]}",
        remedy="read the copy in own_parts/ of the model's folder, and say --own-code (own_code=True in Python) if you"
        " trust it",
    )
