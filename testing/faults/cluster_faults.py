"""`cluster.faults`: the same fault on every broker of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Self

from ..control.client import ControlError, ControlTimeout
from ..waiting import NotReached, wait_until
from .broker_faults import STRIKE_SECONDS, AddedFault
from .fault import Fault

if TYPE_CHECKING:
    from ..running_broker import Broker


class ClusterFault:
    """A fault that was added to all running brokers. As a context manager it is lifted at the end.

    Attributes:
        added: the fault on each of them.
    """

    def __init__(self, added: Sequence[AddedFault]) -> None:
        self.added = list(added)

    @property
    def strikes(self) -> int:
        """How often it has struck so far, on all brokers that still run."""
        return sum(self._strikes_of(fault) for fault in self.added)

    def lift(self) -> None:
        """Have it strike no more, anywhere."""
        for fault in self.added:
            with suppress(ControlError):  # a broker that has ended meanwhile has no faults
                fault.lift()

    def wait_until_struck(self, times: int = 1, timeout: float = STRIKE_SECONDS) -> None:
        """Wait until it has struck so often, on whichever brokers.

        Raises:
            ControlTimeout: a TimeoutError: it has not, within `timeout` seconds.
        """
        try:
            wait_until(lambda: self.strikes >= times, timeout)
        except NotReached:
            raise ControlTimeout(
                f"within {timeout:g} s the fault has struck {self.strikes} of {times} times, on "
                f"all {len(self.added)} brokers together: {self}"
            ) from None

    def _strikes_of(self, fault: AddedFault) -> int:
        try:
            return fault.strikes
        except ControlError:
            return 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.lift()

    def __repr__(self) -> str:
        return f"<fault on {len(self.added)} brokers: {self}>"

    def __str__(self) -> str:
        return str(self.added[0]) if self.added else "a fault of no broker"


class ClusterFaults:
    """The faults of all brokers of a cluster. Each broker counts its requests for itself.

    Args:
        brokers: gives the brokers.
    """

    def __init__(self, brokers: Callable[[], Sequence[Broker]]) -> None:
        self._brokers = brokers

    def add(self, fault: Fault, owner: str = "") -> ClusterFault:
        """Have a fault strike from now on, on every broker that runs.

        Args:
            fault: what `odradek.testing.faults` makes.
            owner: any text, by which `lift_all` finds it again.

        Raises:
            ControlError: no request would ever meet it; the sentence says why.
        """
        return ClusterFault([broker.faults.add(fault, owner) for broker in self._running()])

    @contextmanager
    def during(self, fault: Fault, owner: str = "") -> Iterator[ClusterFault]:
        """Have a fault strike as long as the block lasts."""
        with self.add(fault, owner) as added:
            yield added

    def lift_all(self, owner: str | None = None) -> int:
        """Lift the faults of all brokers; returns how many there were."""
        return sum(broker.faults.lift_all(owner) for broker in self._running())

    def __repr__(self) -> str:
        ids = ", ".join(str(each.broker_id) for each in self._brokers())
        return f"<faults of brokers {ids}: add and lift_all change them>"

    def _running(self) -> list[Broker]:
        return [broker for broker in self._brokers() if broker.is_running]
