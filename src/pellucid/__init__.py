"""pellucid: Transformer language models you can see through.

Importing this package imports no torch; `pellucid.load` does when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pellucid.loading import load

__all__ = ["__version__", "load"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "load":
        return importlib.import_module("pellucid.loading").load
    raise AttributeError(f"module 'pellucid' has no attribute '{name}'")
