"""Several processes give what one gives, in order, and none outlives the pool."""

import os
import signal
import subprocess
import sys
import time

import pytest

from pellucid.errors import TokenizerError, UserError
from pellucid.text import EncodingPool, Stretch, character_tokenizer, train_byte_pairs

TASKS = [[Stretch(f"number {number}, low lower lowest\n" * (number % 7), 90, False)] for number in range(40)]


@pytest.fixture(scope="module")
def tokenizer():
    return train_byte_pairs(["low lower lowest\n" * 9], 270)


def ids(found):
    return [[encoded.ids.tolist() for encoded in answer.encoded] for answer in found]


def test_two_processes_give_what_one_gives_in_the_same_order(tokenizer):
    with EncodingPool(tokenizer, processes=1) as one, EncodingPool(tokenizer, processes=2) as two:
        assert ids(two.encoded(TASKS)) == ids(one.encoded(TASKS))


def test_tasks_are_asked_for_no_faster_than_they_are_done(tokenizer):
    asked = []
    with EncodingPool(tokenizer, processes=2) as pool:
        for done, _ in enumerate(pool.encoded(asked.append(task) or task for task in TASKS)):
            assert len(asked) <= done + 4


def test_what_a_tokenizer_refuses_is_its_own_sentence():
    refused = [[Stretch("a?", 2, False)]]
    with EncodingPool(character_tokenizer(["abc"]), processes=2) as pool, pytest.raises(TokenizerError, match=r"'\?'"):
        list(pool.encoded(refused))


def test_a_process_that_is_killed_is_a_sentence_and_not_a_wait(tokenizer):
    with EncodingPool(tokenizer, processes=2) as pool:
        list(pool.encoded(TASKS[:4]))
        os.kill(pool._workers[0].pid, signal.SIGKILL)
        with pytest.raises(UserError, match="killed from outside"):
            list(pool.encoded(TASKS))


def test_the_processes_end_with_the_pool(tokenizer):
    with EncodingPool(tokenizer, processes=2) as pool:
        next(pool.encoded(TASKS))
        workers = pool._workers
    assert all(worker.poll() is not None for worker in workers)


OWNER = """
import sys, time
from pellucid.text import EncodingPool, Stretch, character_tokenizer
with EncodingPool(character_tokenizer(["abc"]), processes=2) as pool:
    list(pool.encoded([[Stretch("abc", 3, False)]] * 3))
    print(*[worker.pid for worker in pool._workers], flush=True)
    time.sleep(60)
"""


def test_the_processes_end_when_their_owner_is_killed_and_say_nothing():
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    workers = [int(pid) for pid in owner.stdout.readline().split()]
    assert len(workers) == 2
    owner.kill()
    assert owner.communicate()[1] == ""  # the pipe closes when the last process that holds it ends
    for _ in range(100):
        if not any(os.path.exists(f"/proc/{pid}") for pid in workers):
            break
        time.sleep(0.1)
    assert not any(os.path.exists(f"/proc/{pid}") for pid in workers)


def test_ctrl_c_in_a_terminal_reaches_the_owner_alone():
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert len(owner.stdout.readline().split()) == 2
    os.killpg(owner.pid, signal.SIGINT)  # as a terminal does: to the whole group
    assert owner.communicate()[1].count("Traceback") == 1  # the owner's own
