"""A broker that ends with whoever started it, however that one ended."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress

STOP_SECONDS_MAX = 90
"""So long a broker that has nobody left may take to stop in good order."""
READ_BYTES = 4096


def stop_at_end_of_input() -> None:
    """Have this process stop as by SIGTERM once its standard input has ended.

    That is a pipe whose other end its parent holds: the kernel closes it when the parent is gone,
    by SIGKILL, too. A process that does not stop then is ended by the kernel's timer, which needs
    nothing of it.
    """

    def wait() -> None:
        with suppress(OSError):  # there is no input
            while os.read(0, READ_BYTES):
                pass
        signal.alarm(STOP_SECONDS_MAX)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="waits for the end of input", daemon=True).start()
