import sys

import pytest

from pellucid.cli import said_once as said_once_module
from pellucid.cli.said_once import said_once
from pellucid.errors import UserError


def mistaken(environment):
    with said_once(environment):
        sys.stdout.write("heard\n")
        raise UserError("a file", came="none", remedy="give one")


@pytest.mark.parametrize("environment", [{}, {"LOCAL_RANK": "0", "RANK": "2"}])
def test_alone_and_first_on_a_machine_a_mistake_is_said(environment, capsys):
    with pytest.raises(UserError, match="a file"):
        mistaken(environment)
    assert capsys.readouterr().out == "heard\n"


def test_the_others_on_a_machine_end_without_a_word_and_not_before_it_is_said(capsys, monkeypatch):
    waited = []
    monkeypatch.setattr(said_once_module.time, "sleep", waited.append)
    with pytest.raises(SystemExit) as ended:
        mistaken({"LOCAL_RANK": "1"})
    assert ended.value.code == 2
    assert capsys.readouterr() == ("", "")
    assert waited == [said_once_module.LEAVE]
