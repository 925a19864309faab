"""Three brokers with links that can be cut, each with a wall clock of its own that a test steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .broker_cluster import BROKER_IDS
from .replicated_cluster import ReplicatedCluster
from .stepped_clock import SteppedBroker


class ClockedCluster(ReplicatedCluster):
    """Brokers that are processes, with a replicated topic.

    Args:
        folder: where all their files lie.
        options: see `ReplicatedCluster`.
    """

    def __init__(self, folder: Path, **options: Any) -> None:
        self._ahead_s = dict.fromkeys(BROKER_IDS, 0)
        super().__init__(folder, **options)

    def step_clock(self, broker_id: int, seconds: int) -> int:
        """Set a broker's clock forwards, or back; returns how far it is from the machine's now."""
        self._ahead_s[broker_id] += seconds
        broker = self.brokers[broker_id]
        assert isinstance(broker, SteppedBroker)
        broker.set_wall_clock(self._ahead_s[broker_id])
        return self._ahead_s[broker_id]

    def _broker(self, broker_id: int) -> SteppedBroker:
        plain = super()._broker(broker_id)
        return SteppedBroker(
            plain.data_dir, settings=plain.settings, arguments=plain.arguments, start=False
        )
