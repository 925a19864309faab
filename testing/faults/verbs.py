"""What is asked of a broker about its faults: verbs of the control channel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import trio

from ..control.verbs import Controlled
from .fault import fault_from_json
from .fault_table import FaultTable


def add(target: Controlled, fault: Mapping[str, Any], owner: str = "") -> dict[str, Any]:
    """Add a fault."""
    return _table(target).add(fault_from_json(fault), owner).to_json()


def show(target: Controlled, number: int) -> dict[str, Any]:
    """What there is to know of a fault."""
    return _table(target).find(number).to_json()


def known(target: Controlled, owner: str | None = None) -> list[dict[str, Any]]:
    """All that are not lifted, or an owner's."""
    return [
        fault.to_json() for fault in _table(target).known() if owner is None or fault.owner == owner
    ]


def lift(target: Controlled, number: int) -> dict[str, Any]:
    """Have a fault strike no more."""
    table = _table(target)
    fault = table.find(number)
    table.lift(fault)
    return fault.to_json()


def lift_all(target: Controlled, owner: str | None = None) -> int:
    """Lift all, or an owner's; returns how many were lifted."""
    table = _table(target)
    lifted = [fault for fault in table.known() if owner is None or fault.owner == owner]
    for fault in lifted:
        table.lift(fault)
    return len(lifted)


async def wait(target: Controlled, number: int, times: int, timeout: float) -> dict[str, Any]:
    """Wait until a fault has struck so often.

    Raises:
        TimeoutError: it has not, within `timeout` seconds.
    """
    fault = _table(target).find(number)
    with trio.move_on_after(timeout):
        await fault.wait_until_struck(times)
    if fault.strikes < times:
        raise TimeoutError(
            f"within {timeout:g} s the fault has struck {fault.strikes} of {times} times, of "
            f"{fault.trigger.matches} requests that it was about: {fault.fault}"
        )
    return fault.to_json()


def _table(target: Controlled) -> FaultTable:
    table: FaultTable | None = target.kept.get("faults")
    if table is None:
        table = target.kept["faults"] = FaultTable(target)
    return table
