"""`broker.faults`: what a test says to add, see and lift faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ..control.client import ControlError
from .fault import Fault, fault_from_json

if TYPE_CHECKING:
    from ..control.client import ControlClient

STRIKE_SECONDS = 30.0
"""How long a strike is waited for, unless the call says otherwise."""
ANSWER_SECONDS = 30.0
"""How much longer the control channel may take to tell of it."""


class AddedFault:
    """A fault of a broker. As a context manager it is lifted at the end.

    Attributes:
        id: its number on this broker, as the broker's log has it.
        fault: what it is.
        owner: the text it was added with.
    """

    def __init__(self, control: ControlClient, facts: dict[str, Any]) -> None:
        self.id: int = facts["id"]
        self.fault: Fault = fault_from_json(facts["fault"])
        self.owner: str = facts["owner"]
        self._control = control

    @property
    def strikes(self) -> int:
        """How often it has struck so far."""
        strikes: int = self._facts()["strikes"]
        return strikes

    @property
    def matches(self) -> int:
        """How many requests it was about so far, whether or not they were struck."""
        matches: int = self._facts()["matches"]
        return matches

    @property
    def is_lifted(self) -> bool:
        """Whether it is over."""
        is_lifted: bool = self._facts()["is_lifted"]
        return is_lifted

    def lift(self) -> None:
        """Have it strike no more; nothing happens if it is lifted already."""
        self._control.call("faults.lift", number=self.id)

    def wait_until_struck(self, times: int = 1, timeout: float = STRIKE_SECONDS) -> None:
        """Wait until it has struck so often, since it was added.

        Raises:
            ControlTimeout: a TimeoutError: it has not, within `timeout` seconds.
        """
        self._control.call(
            "faults.wait",
            answer_within=timeout + ANSWER_SECONDS,
            number=self.id,
            times=times,
            timeout=timeout,
        )

    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = self._control.call("faults.show", number=self.id)
        return facts

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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
        return AddedFault(control, control.call("faults.add", fault=fault.to_json(), owner=owner))

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
        found = control.call("faults.known", owner=owner or self._owner or None)
        return [AddedFault(control, each) for each in found]

    def lift(self, fault: AddedFault) -> None:
        """Have a fault strike no more."""
        fault.lift()

    def lift_all(self, owner: str | None = None) -> int:
        """Lift all faults; returns how many there were.

        Args:
            owner: only those that were added with this text.
        """
        owner = owner or self._owner or None
        lifted: int = self._control().call("faults.lift_all", owner=owner)
        return lifted
