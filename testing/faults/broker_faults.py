"""`broker.faults`: faults are added to a broker, looked at and lifted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Self

from ..control.client import ControlError
from ..control.verbs import verb
from .fault import Fault, FaultStatus

if TYPE_CHECKING:
    from ..control.client import ControlClient
    from ..control.target import ControlTarget
    from .fault_table import FaultTable

STRIKE_SECONDS = 30.0
"""How long a strike is waited for, unless the call says otherwise."""
ANSWER_SECONDS = 30.0
"""How much longer the control channel may take to say so."""


# -- in the broker's process ----------------------------------------------------------------------


@verb
def add(target: ControlTarget, fault: Fault, owner: str = "") -> FaultStatus:
    """Have a fault strike from now on."""
    fault.check()
    return _table(target).add(fault, owner).status()


@verb
def show(target: ControlTarget, number: int) -> FaultStatus:
    """The fault of a number."""
    return _table(target).find(number).status()


@verb
def known(target: ControlTarget, owner: str | None = None) -> list[FaultStatus]:
    """All that are not lifted, or an owner's."""
    return [
        fault.status() for fault in _table(target).known() if owner is None or fault.owner == owner
    ]


@verb
def lift(target: ControlTarget, number: int) -> None:
    """Have a fault strike no more."""
    table = _table(target)
    table.lift(table.find(number))


@verb
def lift_all(target: ControlTarget, owner: str | None = None) -> int:
    """Lift all, or an owner's; returns how many were lifted."""
    table = _table(target)
    lifted = [fault for fault in table.known() if owner is None or fault.owner == owner]
    for fault in lifted:
        table.lift(fault)
    return len(lifted)


@verb
async def wait(target: ControlTarget, number: int, times: int, timeout: float) -> None:
    """Wait until a fault has struck so often.

    Raises:
        TimeoutError: it has not, within `timeout` seconds.
    """
    fault = _table(target).find(number)
    if not await target.wait_until(lambda: fault.strikes >= times, timeout):
        raise TimeoutError(
            f"within {timeout:g} s the fault has struck {fault.strikes} of {times} times, of "
            f"{fault.trigger.matches} requests that it was about: {fault.fault}"
        )


def _table(target: ControlTarget) -> FaultTable:
    from .fault_table import FaultTable

    if target.faults is None:
        target.faults = FaultTable(target.broker)
    return target.faults


# -- in a test's process --------------------------------------------------------------------------


class AddedFault:
    """A fault of a broker. As a context manager it is lifted at the end.

    Attributes:
        id: its number on this broker, as the broker's log has it.
        fault: what it is.
        owner: the text it was added with.
    """

    def __init__(self, control: ControlClient, status: FaultStatus) -> None:
        self.id = status.id
        self.fault = status.fault
        self.owner = status.owner
        self._control = control

    @property
    def strikes(self) -> int:
        """How often it has struck so far."""
        return self._status().strikes

    @property
    def matches(self) -> int:
        """How many requests it was about so far, whether or not they were struck."""
        return self._status().matches

    @property
    def is_lifted(self) -> bool:
        """Whether it is over."""
        return self._status().is_lifted

    def _status(self) -> FaultStatus:
        return show.on(self._control)(self.id)

    def lift(self) -> None:
        """Have it strike no more; nothing happens if it is lifted already."""
        lift.on(self._control)(self.id)

    def wait_until_struck(self, times: int = 1, timeout: float = STRIKE_SECONDS) -> None:
        """Wait until it has struck so often, since it was added.

        Raises:
            ControlTimeout: a TimeoutError: it has not, within `timeout` seconds.
        """
        wait.on(self._control, timeout + ANSWER_SECONDS)(self.id, times, timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ControlError):  # a broker that has ended meanwhile has no faults
            self.lift()

    def __str__(self) -> str:
        return str(self.fault)

    def __repr__(self) -> str:
        return f"<fault {self.id}: {self.fault}>"


class BrokerFaults:
    """The faults of one broker. They end with its process: one that is restarted has none.

    Args:
        control: gives the control channel of the running broker.
        owner: whose faults these are, any text; empty: everybody's.
        must_be_narrow: whether others use the broker, who must not meet this test's faults.
    """

    def __init__(
        self, control: Callable[[], ControlClient], owner: str = "", must_be_narrow: bool = False
    ) -> None:
        self._control = control
        self._owner = owner
        self._must_be_narrow = must_be_narrow

    def add(self, fault: Fault, owner: str | None = None) -> AddedFault:
        """Have a fault strike from now on.

        Args:
            fault: what `odradek.testing.faults` makes.
            owner: any text, by which `lift_all` finds it again.

        Raises:
            ControlError: no request of the broker would ever meet it; the sentence says why.
            ValueError: others use the broker, and would meet the fault.
        """
        if not isinstance(fault, Fault):
            raise TypeError(
                f"{fault!r} is no fault: `from odradek.testing import faults` has functions that "
                "make one, such as faults.lose_answer('Produce').once()"
            )
        if self._must_be_narrow and not fault.match.is_narrow:
            raise ValueError(
                f"other tests use this broker and would meet this fault: {fault}. Name a topic, "
                "group, client_id or transactional_id, or use a broker of the test's own (the "
                "fixture kafka_broker)"
            )
        owner = self._owner if owner is None else owner
        control = self._control()
        return AddedFault(control, add.on(control)(fault, owner))

    @contextmanager
    def during(self, fault: Fault, owner: str | None = None) -> Iterator[AddedFault]:
        """Have a fault strike as long as the block lasts."""
        with self.add(fault, owner) as added:
            yield added

    def list(self, owner: str | None = None) -> list[AddedFault]:
        """Those that are not lifted, in the order they were added.

        Args:
            owner: only those that were added with this text.
        """
        control = self._control()
        found = known.on(control)(owner or self._owner or None)
        return [AddedFault(control, each) for each in found]

    def lift(self, fault: AddedFault) -> None:
        """Have a fault strike no more."""
        fault.lift()

    def __repr__(self) -> str:
        of = f" that {self._owner} added" if self._owner else ""
        return f"<faults of a broker{of}: list shows them, add and lift change them>"

    def lift_all(self, owner: str | None = None) -> int:
        """Lift all faults; returns how many there were.

        Args:
            owner: only those that were added with this text.
        """
        owner = owner or self._owner or None
        return lift_all.on(self._control())(owner)
