"""What operations act on: a cluster, and the faults that requests have added to it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from ..cluster import Cluster
from ..control.client import ControlError
from ..faults.broker_faults import AddedFault
from ..faults.fault import Fault
from ..running_broker import Broker
from .operation import RequestRefused

FAULTS_MAX = 10_000
"""Remembered at once; those that are lifted are forgotten."""


class ServedFault(NamedTuple):
    """A fault of one broker or of several.

    Attributes:
        id: its number here; brokers have numbers of their own.
        added: on each of the brokers.
    """

    id: int
    fault: Fault
    added: Sequence[AddedFault]


class ServedCluster:
    """A cluster that requests over HTTP act on.

    Args:
        cluster: of one broker or more.

    Attributes:
        faults: those that are not lifted, by number.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.faults: dict[int, ServedFault] = {}
        self._numbers = itertools.count(1)

    def add_fault(self, fault: Fault, brokers: Sequence[Broker]) -> ServedFault:
        """Have a fault strike on some brokers from now on; each counts its requests for itself.

        Raises:
            ControlError: no request of theirs would ever meet it.
            RequestRefused: there are `FAULTS_MAX`.
        """
        if len(self.faults) >= FAULTS_MAX:
            raise RequestRefused(409, f"there are {FAULTS_MAX} faults: lift some of them first")
        added = [broker.faults.add(fault) for broker in brokers]
        served = ServedFault(next(self._numbers), fault, added)
        self.faults[served.id] = served
        return served

    def fault(self, number: int) -> ServedFault:
        """The fault of a number.

        Raises:
            RequestRefused: there is none, or it is lifted.
        """
        found = self.faults.get(number)
        if found is None:
            known = ", ".join(map(str, self.faults)) or "none"
            raise RequestRefused(
                404, f"there is no fault {number}, or no longer; the faults are {known}"
            )
        return found

    def lift(self, served: ServedFault) -> None:
        """Have a fault strike no more."""
        self.faults.pop(served.id, None)
        for each in served.added:
            with suppress(ControlError):  # a broker that has ended meanwhile has no faults
                each.lift()

    def lift_all(self) -> int:
        """Have no fault strike any more; returns how many there were."""
        lifted = list(self.faults.values())
        for each in lifted:
            self.lift(each)
        return len(lifted)


def strikes_of(served: ServedFault) -> tuple[int, int]:
    """How often a fault has struck, and how many requests it was about, where brokers run."""
    strikes = matches = 0
    for each in served.added:
        try:
            strikes, matches = strikes + each.strikes, matches + each.matches
        except ControlError:  # a broker that has ended meanwhile has no faults
            continue
    return strikes, matches
