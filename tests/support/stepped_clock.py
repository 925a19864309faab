"""Broker processes whose wall clock a test steps, by libfaketime; their monotonic one goes on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.testing.process.broker_process import BrokerProcess

from .broker_cluster import BrokerCluster

HOUR_S = 3_600
LIBRARY = "libfaketimeMT.so.1"
FOLDERS = ("/usr/lib", "/usr/local/lib", "/usr/lib64", "/opt/homebrew/lib")


def find_library() -> Path:
    """libfaketime for processes with threads; without it the test fails, as a skip is not seen."""
    for folder in FOLDERS:
        for path in (
            *Path(folder).glob(f"faketime/{LIBRARY}"),
            *Path(folder).glob(f"*/faketime/{LIBRARY}"),
        ):
            return path
    pytest.fail(f"{LIBRARY} is not installed: install it, such as Debian's faketime", pytrace=False)


class SteppedBroker(BrokerProcess):
    """A broker whose wall clock is wrong by what its file says, read at every look at the clock."""

    def set_wall_clock(self, ahead_s: int, rate: float = 1) -> None:
        """Have its wall clock be ahead of the machine's, or behind it, and run fast or slow.

        Args:
            ahead_s: by so many seconds; negative: behind.
            rate: seconds that pass by it in one second.
        """
        part = self._ahead_path.with_suffix(".part")
        part.write_text(f"{ahead_s:+d} x{rate}\n")
        part.replace(self._ahead_path)

    @property
    def _ahead_path(self) -> Path:
        assert self.data_dir is not None
        return self.data_dir.with_name(f"{self.data_dir.name}.ahead")

    def environment(self) -> dict[str, str]:
        if not self._ahead_path.exists():
            self.set_wall_clock(0)
        return {
            **os.environ,
            "LD_PRELOAD": str(find_library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._ahead_path),
            "FAKETIME_NO_CACHE": "1",
            # Else the steps would go to the monotonic clock, too, which no machine does.
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }


class SteppedCluster(BrokerCluster):
    """Three of them, on the embedded metadata store."""

    def set_wall_clock(self, broker_id: int, ahead_s: int, rate: float = 1) -> None:
        """Have a broker's wall clock be ahead by so much, at a rate; see `SteppedBroker`."""
        broker = self.brokers[broker_id]
        assert isinstance(broker, SteppedBroker)
        broker.set_wall_clock(ahead_s, rate)

    def _broker(self, broker_id: int) -> SteppedBroker:
        plain = super()._broker(broker_id)
        return SteppedBroker(
            plain.data_dir, settings=plain.settings, arguments=plain.arguments, start=False
        )
