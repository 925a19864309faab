"""Has kazoo keep its connections alive by monotonic time.

kazoo 2 reckons by wall time when its next ping is due: where the clock is set back by an hour, none
is sent for an hour, and the server ends the session. Both modules use nothing else of `time`.
"""

from __future__ import annotations

from kazoo.handlers import utils
from kazoo.protocol import connection

from ...runtime.clock import SystemClock

_clock = SystemClock()


class MonotonicTime:
    """Stands where kazoo has the standard library's module of that name."""

    @staticmethod
    def time() -> float:
        """Seconds since an arbitrary moment; never goes back."""
        return _clock.monotonic_ms() / 1000


def keep_connections_by_monotonic_time() -> None:
    """Do it, for all of kazoo's clients of this process; may be done twice."""
    connection.time = utils.time = MonotonicTime
