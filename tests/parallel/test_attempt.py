"""A killed attempt leaves its words in the store; the next one must not take them for its own."""

import threading

import pytest
import torch.distributed as dist

from pellucid.parallel.attempt import of_this_attempt


def attempt(store, count, patience=20.0):
    """What each process finds under "0", where the first one has written; the others come late."""
    found, failed = {}, []

    def take_part(rank):
        try:
            own = of_this_attempt(store, rank, count, patience)
            if rank == 0:
                own.set("0", "the first one's address")
            found[rank] = own.get("0")
        except RuntimeError as error:
            failed.append(error)

    threads = [threading.Thread(target=take_part, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found, failed


def test_all_processes_come_to_share_a_part_of_the_store():
    found, failed = attempt(dist.HashStore(), 3)
    assert not failed
    assert [found[rank] for rank in range(3)] == [b"the first one's address"] * 3


def test_what_an_earlier_attempt_has_left_is_not_seen():
    store = dist.HashStore()
    attempt(store, 2)
    words = []
    for rank in (1, 0):  # the second one comes first, and finds everything that the dead have said
        thread = threading.Thread(target=lambda rank=rank: words.append(of_this_attempt(store, rank, 2)))
        thread.start()
        if rank == 1:
            thread.join(0.2)
            assert thread.is_alive()  # it waits for a living one
        else:
            thread.join()
    assert not words[0].check(["0"])


def test_whoever_waits_in_vain_says_so():
    with pytest.raises(RuntimeError, match="2 processes have not come"):
        of_this_attempt(dist.HashStore(), 0, 3, patience=0.1)
