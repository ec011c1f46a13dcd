"""pellucid: Transformer language models you can see through.

Importing this package imports no torch; `pellucid.load` does when it is first used.
"""

__version__ = "0.1.0"
