"""How long a member may be silent before it is given up.

A sign of life only moves the deadline. The one timer that a session has is not touched by it: when
it fires too early it is armed again for what is left, so a heartbeat costs no heap operation, and a
member wakes the loop once per session timeout.
"""

from __future__ import annotations

from collections.abc import Callable

from ...runtime.timers import Timer
from .runtime import GroupRuntime


class Session:
    """The session of one member, of any kind of group; it begins with the first sign of life.

    Args:
        runtime: clock and timers.
        on_over: called when the member was silent too long. It decides what that means; the
            session goes on with the next sign of life, if there is one.

    Attributes:
        deadline_ms: when it is over, in monotonic milliseconds.
    """

    __slots__ = ("_monotonic_ms", "_on_over", "_runtime", "_timer", "deadline_ms")

    def __init__(self, runtime: GroupRuntime, on_over: Callable[[], None]) -> None:
        self._runtime = runtime
        self._monotonic_ms = runtime.clock.monotonic_ms
        self._on_over = on_over
        self._timer: Timer | None = None
        self.deadline_ms = 0

    @property
    def is_running(self) -> bool:
        """Whether it may be over one day."""
        return self._timer is not None

    def extend(self, timeout_ms: int) -> None:
        """A sign of life: it is over in `timeout_ms` from now, not before."""
        deadline_ms = self.deadline_ms = self._monotonic_ms() + timeout_ms
        timer = self._timer
        if timer is None or timer.at_ms > deadline_ms:
            self.stop()
            self._timer = self._runtime.schedule(timeout_ms, self._look)

    def stop(self) -> None:
        """It is never over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        left_ms = self.deadline_ms - self._monotonic_ms()
        if left_ms > 0:
            self._timer = self._runtime.schedule(left_ms, self._look)
        else:
            self._on_over()
