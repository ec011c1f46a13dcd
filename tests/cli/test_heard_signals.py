import os
import signal
import threading
import time

import pytest

from pellucid.cli.heard_signals import signals_are_heard


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM])
def lost_once(request):
    """A signal whose first arrival does nothing, as one that comes a moment too early."""
    heard = []

    def handle(number, _):
        heard.append(number)
        if len(heard) > 1:
            raise KeyboardInterrupt

    before = signal.signal(request.param, handle)
    yield request.param, heard
    signal.signal(request.param, before)


def wait_for_a_line(number):
    with signals_are_heard():
        os.kill(os.getpid(), number)
        time.sleep(20)


def test_one_that_came_too_early_is_sent_again(lost_once):
    number, heard = lost_once
    with pytest.raises(KeyboardInterrupt):
        wait_for_a_line(number)
    assert heard == [number, number]


def test_one_that_is_heard_comes_once_and_nothing_is_left_behind():
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    with pytest.raises(KeyboardInterrupt):
        wait_for_a_line(signal.SIGINT)
    time.sleep(0.3)  # a second one would come by now
    assert threading.active_count() == threads
    if files:
        assert len(os.listdir("/proc/self/fd")) == files
    assert signal.set_wakeup_fd(-1) == -1


def test_without_a_signal_nothing_happens():
    with signals_are_heard():
        pass
    assert signal.set_wakeup_fd(-1) == -1
