"""Fixtures that every room may use, and how hypothesis looks for examples."""

import signal

import hypothesis
import jaxtyping
import pytest

# A shared machine is slow at times, which is no fault of the code; and the same run finds the same thing twice.
hypothesis.settings.register_profile("house", deadline=None, derandomize=True)
hypothesis.settings.load_profile("house")


@pytest.fixture(autouse=True)
def _ctrl_c_is_heard():
    """As at a terminal: a shell that starts the tests behind it makes them, and all they start, deaf to it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def no_shape_checks():
    """Shape annotations sleep, for tests that compile (a check inside a compiled graph fails) or that loop long."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
