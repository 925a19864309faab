"""What ends a run before its end, and the brokers that it has started with it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM ends what runs in this as Ctrl-C does, so that the brokers it has started end, too.

    A script's background might have switched Ctrl-C off. Signals are the main thread's: in another
    thread this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.signal(number, signal.default_int_handler)
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
