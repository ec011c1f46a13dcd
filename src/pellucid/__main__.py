"""`python -m pellucid VERB …` is `pellucid VERB …`, for launchers that take a module.

In: words from a terminal.  Out: an exit code.  Used by: torchrun and people.  Read next: cli/main.py.
"""

import sys

from pellucid.cli.main import run

if __name__ == "__main__":
    sys.exit(run())
