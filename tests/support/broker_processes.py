"""`odradek serve --brokers N --processes`, and what it says of its brokers' processes."""

from __future__ import annotations

import json
import os
import select
import signal
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.waiting import wait_until

from .metrics_page import MetricsPage, scrape

END_SECONDS_MAX = 60.0
ANSWER_SECONDS_MAX = 60.0


class Probed(NamedTuple):
    """What `/health` or `/ready` answered."""

    status: int
    body: dict[str, Any]

    @property
    def reasons(self) -> list[str]:
        return list(self.body["reasons"])


class BrokerProcesses(BrokerProcess):
    """The command; a context manager that stops it.

    Args:
        folder: for data and log.
        count: how many brokers.
        arguments: of `odradek serve` besides.
        settings: of all brokers.
    """

    def __init__(
        self,
        folder: Path,
        count: int = 2,
        *arguments: str,
        settings: dict[str, str] | None = None,
    ) -> None:
        super().__init__(
            folder / "data",
            settings=settings,
            arguments=[
                *("--brokers", str(count), "--processes", "--metrics", "127.0.0.1:0"),
                *arguments,
            ],
        )
        self.addresses = self.ready_line.split(" ")[3].removesuffix(",").split(",")

    def probe(self, path: str) -> Probed:
        """Ask `/health` or `/ready`."""
        url = self.metrics_urls[0].removesuffix("/metrics") + path
        try:
            with urllib.request.urlopen(url, timeout=ANSWER_SECONDS_MAX) as response:
                return Probed(response.status, json.load(response))
        except urllib.error.HTTPError as error:
            return Probed(error.code, json.load(error))

    def scrape(self) -> MetricsPage:
        """The page of metrics."""
        return scrape(self.metrics_urls[0])

    def pids(self) -> dict[int, int | None]:
        """The brokers' processes, by broker id."""
        return {each["broker_id"]: each["pid"] for each in self.probe("/health").body["brokers"]}

    def kill_broker(self, broker_id: int) -> None:
        """SIGKILL to one broker's process, whose end is waited for."""
        pid = self.pids()[broker_id]
        assert pid is not None
        with ProcessEnd(pid) as end:
            os.kill(pid, signal.SIGKILL)
            end.wait()

    def wait_until_ready(self) -> None:
        """Wait until all brokers serve."""
        wait_until(
            lambda: self.probe("/ready").status == 200,
            otherwise=lambda: f"{self.probe('/ready')}\n{self.log[-4000:]}",
        )


class ProcessEnd:
    """The end of a process, which may be another's child; a context manager, entered before it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._descriptor = os.pidfd_open(pid)

    def wait(self) -> None:
        """Wait for it. Raises AssertionError if it does not come."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        assert poll.poll(END_SECONDS_MAX * 1000), f"process {self._pid} does not end"

    def __enter__(self) -> ProcessEnd:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
