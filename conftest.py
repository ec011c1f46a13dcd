"""Makes the checker of annotations known by name, before any file of the package is imported."""

import tests.typechecker  # noqa: F401
