import pytest
import torch.distributed as dist

from pellucid.errors import ConfigError
from pellucid.parallel import ALONE, Ranks, joined_ranks, launched, speaks_of_loss

SAID = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


def test_without_torchrun_a_process_is_alone_and_no_group_is_made():
    assert launched({}) == launched({"WORLD_SIZE": "1", "RANK": "0"}) == ALONE
    with joined_ranks() as ranks:
        assert ranks == ALONE
        assert not dist.is_initialized()


def test_torchrun_says_who_one_is():
    assert launched(SAID) == Ranks(3, 4, 1)


@pytest.mark.parametrize(
    ("environment", "came"),
    [
        ({"WORLD_SIZE": "2"}, "WORLD_SIZE=2 and no RANK and no LOCAL_RANK and no MASTER_ADDR and no MASTER_PORT"),
        ({**SAID, "MASTER_ADDR": ""}, "WORLD_SIZE=4 and no MASTER_ADDR"),
        ({**SAID, "WORLD_SIZE": "two"}, "no number .*'two'"),
    ],
)
def test_an_environment_that_says_half_is_refused(environment, came):
    with pytest.raises(ConfigError, match=came):
        launched(environment)


def test_an_error_of_the_wire_is_told_from_others():
    assert speaks_of_loss(RuntimeError("[gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:33"))
    assert not speaks_of_loss(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
