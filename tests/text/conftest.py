from pydoc_data.topics import topics

import pytest
from hypothesis import settings

from pellucid.text import train_byte_pairs

settings.register_profile("unhurried", deadline=None)  # no test is timed: the machine is shared
settings.load_profile("unhurried")

# Python's own manual: 460,000 characters of English prose and code that are on every machine.
MANUAL = "\n".join(topics.values())


@pytest.fixture(scope="session")
def manual():
    return MANUAL


@pytest.fixture(scope="session")
def byte_pairs():
    return train_byte_pairs([MANUAL], 1024)
