"""Fixtures that every room may use."""

import jaxtyping
import pytest


@pytest.fixture
def no_shape_checks():
    """Shape annotations sleep, for tests that compile (a check inside a compiled graph fails) or that loop long."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
