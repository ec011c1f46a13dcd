"""A signal that comes while a line is waited for is heard, even if it comes a moment too early.

Between the prompt and the waiting there is a moment in which Python notes a signal and does not yet act on it; the
waiting itself, inside the C library, is then not interrupted, and Ctrl-C or SIGTERM seem to do nothing until a key is
typed. So what has been noted is sent once more, a tenth of a second later, until the waiting is over.

In: nothing.  Out: a block in which signals end the waiting.  Used by: chat_terminal.  Read next: chat_terminal.py.
"""

import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

AGAIN_SECONDS = 0.1
ENDS = {signal.SIGINT, signal.SIGTERM}


@contextmanager
def signals_are_heard() -> Generator[None]:
    """Send SIGINT and SIGTERM again while the block lasts; for the main thread."""
    if not hasattr(signal, "pthread_kill"):  # Windows: there the console wakes whoever waits
        yield
        return
    noted, note = os.pipe()
    os.set_blocking(note, False)
    before = signal.set_wakeup_fd(note, warn_on_full_buffer=False)
    over, waiting = threading.Event(), threading.get_ident()

    def send_again() -> None:
        while numbers := os.read(noted, 64):  # nothing is left to read when the other end is closed
            while numbers[0] in ENDS and not over.wait(AGAIN_SECONDS):
                signal.pthread_kill(waiting, numbers[0])

    thread = threading.Thread(target=send_again, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        os.close(note)
        thread.join()
        os.close(noted)
