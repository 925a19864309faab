"""One broker's process, over all its lives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import trio

from ..announced import metrics_urls, ready_addresses
from ..service_manager import NOTIFY_SOCKET
from .merged_log import MergedLog

LINE_BYTES_MAX: Final = 1 << 20
"""A longer line of its log is cut."""
LAST_LINES_SECONDS_MAX: Final = 5.0
"""What it wrote is read so long after its end; something that it started may hold its pipes."""


class BrokerChild:
    """Starts `odradek serve` for one broker, again and again, and reads what it says.

    Args:
        broker_id: its number.
        settings: of its own and of all, as `-o` gives them.
        arguments: of the command line besides.
        log: gets the lines of its standard error.

    Attributes:
        address: where clients find it; "" while it is not ready.
        metrics_url: where its metrics are; "" while it is not ready, or if nobody wants them.
        was_ready: whether it has ever been.
        starts: how often it was started.
    """

    def __init__(
        self, broker_id: int, settings: Mapping[str, str], arguments: Sequence[str], log: MergedLog
    ) -> None:
        self.broker_id = broker_id
        self.address = ""
        self.metrics_url = ""
        self.was_ready = False
        self.starts = 0
        self._settings = dict(settings)
        self._arguments = tuple(arguments)
        self._log = log
        self._process: trio.Process | None = None
        self._is_stopping = False

    @property
    def pid(self) -> int | None:
        """Its process; None between two lives."""
        return None if self._process is None else self._process.pid

    def command(self, companions: Sequence[int]) -> list[str]:
        """The command line of its next start.

        Args:
            companions: the brokers that it waits for before it says that it is ready.
        """
        command = [sys.executable, "-m", "odradek", "serve", "--stop-at-end-of-input"]
        if companions:
            command += ["--await-brokers", ",".join(map(str, companions))]
        for key, value in self._settings.items():
            command += ["-o", f"{key}={value}"]
        return [*command, *self._arguments]

    async def live(self, companions: Sequence[int], on_ready: Callable[[], None]) -> str:
        """Start it, and wait until it has ended.

        Args:
            companions: see `command`.
            on_ready: called when it serves.

        Returns:
            How it ended, to be said behind its name; "" if it stopped as it should.
        """
        self.starts += 1
        try:
            # Its input is the pipe that tells it that this process is gone. A Ctrl-C on the
            # terminal goes to this process's group, not to its own: it is stopped from here.
            self._process = process = await trio.lowlevel.open_process(
                self.command(companions),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={key: value for key, value in os.environ.items() if key != NOTIFY_SOCKET},
                process_group=0,
            )
        except OSError as error:
            return f"could not be started: {error}"
        if self._is_stopping:
            self.stop()

        def read_announced(lines: list[str]) -> None:
            for line in lines:
                self._read_announced(line, on_ready)

        def log(lines: list[str]) -> None:
            self._log.write(self.broker_id, lines)

        assert process.stdout is not None
        assert process.stderr is not None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_read_lines, process.stdout, read_announced)
            nursery.start_soon(_read_lines, process.stderr, log)
            code = await process.wait()
            self.address = self.metrics_url = ""
            nursery.cancel_scope.deadline = trio.current_time() + LAST_LINES_SECONDS_MAX
        self._process = None
        assert process.stdin is not None
        await process.stdin.aclose()
        return _how(code)

    def stop(self) -> None:
        """Have it stop in good order, and not start again."""
        self._is_stopping = True
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once, if it is there."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    def _read_announced(self, line: str, on_ready: Callable[[], None]) -> None:
        self.metrics_url = metrics_urls(line) or self.metrics_url
        address = ready_addresses(line)
        if address is not None:
            self.address = address
            self.was_ready = True
            self._keep_port()
            on_ready()

    def _keep_port(self) -> None:
        """Have it take the port again at which clients know it, if it was given a free one."""
        first, comma, others = self._settings["listeners"].partition(",")
        host, _, port = first.rpartition(":")
        if port == "0":
            own_port = self.address.rpartition(":")[2]
            self._settings["listeners"] = f"{host}:{own_port}{comma}{others}"


def _how(code: int) -> str:
    if code in (0, -signal.SIGTERM):  # the latter before it listened to signals
        return ""
    if code > 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


async def _read_lines(
    stream: trio.abc.ReceiveStream, on_lines: Callable[[list[str]], None]
) -> None:
    """Hand on whole lines, as they come, until the stream ends."""
    rest = b""
    async with stream:
        async for data in stream:
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > LINE_BYTES_MAX:
                lines.append(rest)
                rest = b""
            if lines:
                on_lines([line.decode(errors="replace") for line in lines])
    if rest:
        on_lines([rest.decode(errors="replace")])
