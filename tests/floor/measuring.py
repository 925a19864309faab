"""One run of the script: what each of its requests costs."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple

import trio
from broker_inside import BEGINNING_MS, SETUP_SECONDS_MAX, broker_inside
from counting import (
    BytecodeCounter,
    CallCounter,
    PeakMemory,
    Work,
    name_of,
    without_collections,
)
from script import CASES, GUARDED, GUARDED_SETTINGS, Case, Prepare, Stage, guard

from odradek.broker.broker import Broker

WARM_UP = 50
EXCHANGES_IN_STEPS_MAX = 3
"""A Fetch of many partitions is read in steps, then known to a session in steps, and then short."""
COUNTED = 48
"""A log of small batches gets an entry in its index every two dozen of them, so a mean over this
many holds two."""
WARM_UP_OF_LONG, COUNTED_OF_LONG = 4, 2
"""Of requests that are themselves many thousand steps, where each step is counted."""


class Cost(NamedTuple):
    """What one request costs, in the mean.

    Attributes:
        python_calls: functions of Python entered.
        c_calls: functions of C called by them.
        bytecodes: instructions of the interpreter executed.
        system_calls: C calls that enter the kernel.
        blocks_kept: blocks of memory that outlive the request.
        peak_bytes: the most memory that it holds more than before, at any moment.
    """

    python_calls: float
    c_calls: float
    bytecodes: float
    system_calls: float
    blocks_kept: float
    peak_bytes: float


class Measured(NamedTuple):
    """A case's cost, and where it comes from: its tree of calls and each function's bytecodes."""

    says: str
    cost: Cost
    tree: dict[str, Any]
    bytecodes_by_function: dict[str, float]


def measure(names: Iterable[str]) -> dict[str, Measured]:
    """Start a broker, and measure these cases one after the other."""
    return trio.run(_measure, list(names))


async def _measure(names: list[str]) -> dict[str, Measured]:
    found: dict[str, Measured] = {}
    for group, settings, prepare in ((CASES, {}, None), (GUARDED, GUARDED_SETTINGS, guard)):
        chosen = [group[name] for name in names if name in group]
        if chosen:
            await _measure_on_one(settings, prepare, chosen, found)
    return found


async def _measure_on_one(
    settings: Mapping[str, str],
    prepare: Callable[[Broker], Awaitable[None]] | None,
    chosen: list[Prepare],
    found: dict[str, Measured],
) -> None:
    async with broker_inside(settings) as (broker, clock):
        if prepare is not None:
            await prepare(broker)
        stage = Stage(broker, BEGINNING_MS)
        cases = [await each(stage) for each in chosen]
        for case in cases:
            await begin(case)
        clock.hold()
        for case in cases:
            found[case.name] = measure_case(case)
        for client in stage.clients:
            client.close()


async def begin(case: Case) -> None:
    """Repeat a case's requests while time goes on: the first ones may be done in steps."""
    for _ in range(EXCHANGES_IN_STEPS_MAX):
        steps, check = case.exchange()
        for client, frame in steps:
            client.send(frame)
            client.run_pass()
        with trio.fail_after(SETUP_SECONDS_MAX):
            while not all(client.has_answer for client, _ in steps):
                await trio.lowlevel.checkpoint()
        check()


def measure_case(case: Case) -> Measured:
    """Measure one case, and see that every request of it did what it should."""
    exchanges = EXCHANGES_IN_STEPS_MAX

    def repeat(times: int, around: Callable[[Work], object]) -> None:
        nonlocal exchanges
        for _ in range(times):
            steps, check = case.exchange()
            for client, frame in steps:
                client.send(frame)
                around(client.run_pass)
            check()
            exchanges += 1

    counted = COUNTED_OF_LONG if case.is_long else COUNTED
    repeat(WARM_UP_OF_LONG if case.is_long else WARM_UP, lambda work: work())
    calls, bytecodes, peak = CallCounter(), BytecodeCounter(), PeakMemory()
    kept = 0

    def all_of_it() -> None:
        nonlocal kept
        repeat(counted, calls.run)
        repeat(counted, bytecodes.run)
        before = sys.getallocatedblocks()
        repeat(COUNTED, lambda work: work())
        kept = sys.getallocatedblocks() - before
        tracemalloc.start()
        try:
            repeat(counted, peak.run)
        finally:
            tracemalloc.stop()

    without_collections(all_of_it)
    case.check_logs(exchanges)
    cost = Cost(
        round(calls.python_calls / counted, 2),
        round(calls.c_calls / counted, 2),
        round(bytecodes.total / counted, 1),
        round(calls.system_calls / counted, 2),
        round(kept / COUNTED, 2),
        peak.median,
    )
    by_function: dict[str, float] = {}
    for code, count in bytecodes.by_code.items():
        name = name_of(code)
        by_function[name] = by_function.get(name, 0) + count / counted
    return Measured(case.says, cost, calls.root.as_json(counted), by_function)
