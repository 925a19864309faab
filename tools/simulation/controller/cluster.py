"""What clients and faults need of the simulated cluster.

The simulator composes them, so they know it by this protocol alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ....common.partition_state import PartitionState
from .broker import ClusterEnvironment, SimulatedBroker
from .invariants import Invariants


class SimulatedCluster(ClusterEnvironment, Protocol):
    """Brokers of which one is the controller, their store, and what must hold of them.

    Attributes:
        leaving: brokers whose controlled shutdown is done, and that stop now.
    """

    brokers: Sequence[SimulatedBroker]
    invariants: Invariants
    leaving: set[int]

    def trace(self, text: str) -> None:
        """Add a line to the trace of the run."""

    def crash(self, broker: SimulatedBroker, how: str) -> None:
        """A broker's process ends; the store notices, at once or later."""

    def leading(self) -> list[tuple[SimulatedBroker, PartitionState]]:
        """Who thinks to lead what, and has a session to change its ISR in."""

    def isr_of(
        self, broker: SimulatedBroker, state: PartitionState, *, lagging: float
    ) -> tuple[int, ...]:
        """A leader and those of its followers that do not lag."""
