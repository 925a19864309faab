"""What a test does to a broker's process: kill, freeze, thaw, restart."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import NamedTuple

from ..process.broker_process import BrokerProcess
from ..process.process_end import Guard
from .broker_outages import BrokerOutages


class StartState(NamedTuple):
    """What a broker has to know of its outages when it starts again.

    Attributes:
        ahead_ms: how far its time is ahead.
        skew_ms: how wrong its wall clock is.
        cuts: by port of another broker, whether the link there is cut silently.
    """

    ahead_ms: int = 0
    skew_ms: int = 0
    cuts: Mapping[int, bool] = MappingProxyType({})

    def arguments(self) -> list[str]:
        """For the command line of `odradek.testing.process.broker`."""
        arguments = []
        if self.ahead_ms:
            arguments += ["--time-ahead", str(self.ahead_ms)]
        if self.skew_ms:
            arguments += [f"--clock-wrong={self.skew_ms}"]
        for port, silent in self.cuts.items():
            arguments += ["--cut-silently" if silent else "--cut", str(port)]
        return arguments


class BreakableProcess(BrokerOutages, BrokerProcess):
    """A broker process that can be frozen, and killed while it is.

    Attributes:
        start_state: what holds over its restarts.
    """

    start_state = StartState()
    _exit_with: int
    _guard: Guard | None = None

    @property
    def is_frozen(self) -> bool:
        """Whether `freeze` was called, and neither `thaw` nor `kill` since."""
        return self._guard is not None

    def freeze(self) -> None:
        """Stop the process where it is (SIGSTOP): its sockets stay open, and nobody answers.

        It thaws by `thaw`, when it is closed, or when the process it belongs to ends.
        """
        if self.is_frozen:
            return
        owner = getattr(self, "_exit_with", os.getpid())
        # A frozen broker cannot see that the process it belongs to is gone.
        self._guard = Guard([owner, self.pid], f"kill -CONT {self.pid}")
        self._note("the process is frozen")
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen process go on; nothing happens if it is not frozen."""
        if not self.is_frozen:
            return
        if self.is_running:
            os.kill(self.pid, signal.SIGCONT)
            self._note("the process goes on")
        self._end_guard()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Frozen for the length of a `with`."""
        self.freeze()
        try:
            yield
        finally:
            self.thaw()

    def restart(self, *, clean: bool = True) -> None:
        """Start it again on the same port and data; the time that a test advanced goes on.

        Args:
            clean: whether it is stopped in good order before, or killed (SIGKILL).
        """
        if clean and self.is_running:
            self.stop()
        else:
            self.kill()
        self.start()

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        """Ask it to stop, and wait for it; a frozen one thaws first. Returns its exit code."""
        self.thaw()
        return super().stop(signal_number)

    def kill(self) -> None:
        """End it at once by SIGKILL, frozen or not; nothing happens if it is not running."""
        super().kill()
        self._end_guard()

    def advance_time(
        self, seconds: float = 0, *, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> float:
        """Let time pass, at once; for a broker that does not run, until it does.

        See `BrokerOutages.advance_time`.
        """
        if self.is_running:
            ahead = super().advance_time(seconds, minutes=minutes, hours=hours, days=days)
        else:
            total = seconds + 60 * (minutes + 60 * (hours + 24 * days))
            ahead = self.start_state.ahead_ms / 1000 + max(total, 0)
        self.start_state = self.start_state._replace(ahead_ms=round(ahead * 1000))
        return ahead

    def set_clock_wrong(self, seconds: float) -> None:
        """Have the broker's wall clock be wrong; see `BrokerOutages.set_clock_wrong`."""
        if self.is_running:
            super().set_clock_wrong(seconds)
        self.start_state = self.start_state._replace(skew_ms=round(seconds * 1000))

    def _end_guard(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.end()

    def _note(self, what: str) -> None:
        """Say something in the broker's log, which it cannot say itself."""
        with self.log_path.open("a") as log:
            log.write(f"outage: {what}\n")
