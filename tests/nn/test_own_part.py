import pytest
from torch import nn

from pellucid.errors import ModelFileError
from pellucid.nn.own_part import CLASSES, own_part


def test_what_nobody_allowed_is_not_built():
    with pytest.raises(ModelFileError, match=r"your consent to run the code .* but got none for some.py:Part"):
        own_part(f"some.py:Part@{'0' * 64}", 3)


def test_what_was_allowed_is_built_from_its_arguments(monkeypatch):
    monkeypatch.setitem(CLASSES, "some.py:Part", nn.Linear)
    part = own_part("some.py:Part", 3, 4)
    assert isinstance(part, nn.Linear)
    assert part.weight.shape == (4, 3)
