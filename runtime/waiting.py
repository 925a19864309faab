"""What async code waits by: trio, or a simulator that drives the same code without it.

Tasks that wait around a state machine (the controller's events, fetchers, channels to brokers,
writers of ISRs) take their time-outs, events and locks from here. In a broker that serves they are
trio's own. A simulator puts a driver in their place, by `driven_by`, and then time passes, and
tasks go on, as it says. Sockets and signals are not waited for by this: what has to do with them
knows trio.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from types import TracebackType
from typing import Any, Protocol, TypeVar

import trio
from trio.lowlevel import RunVar

ResultT = TypeVar("ResultT")


class Event(Protocol):
    """Something that happens once, and that tasks wait for (`trio.Event`)."""

    def is_set(self) -> bool:
        """Whether it has happened."""

    def set(self) -> None:
        """It happens: who waits goes on."""

    async def wait(self) -> None:
        """Wait until it has."""


class Lock(Protocol):
    """Held by one task at a time, in the order in which they came (`trio.Lock`)."""

    async def acquire(self) -> None:
        """Wait until nobody holds it."""

    def release(self) -> None:
        """Let the next one have it."""

    async def __aenter__(self) -> None:
        """Acquire."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release."""


class CancelScope(Protocol):
    """A part of a task that is broken off when it is cancelled, or late (`trio.CancelScope`)."""

    deadline: float

    @property
    def cancel_called(self) -> bool:
        """Whether it was cancelled, or its deadline has passed."""

    @property
    def cancelled_caught(self) -> bool:
        """Whether that broke it off."""

    def cancel(self) -> None:
        """Break it off where it waits next."""

    def __enter__(self) -> CancelScope:
        """It begins."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        """It ends."""


class Nursery(Protocol):
    """Where tasks are started that end with it (`trio.Nursery`)."""

    @property
    def cancel_scope(self) -> CancelScope:
        """Of all its tasks."""

    def start_soon(self, function: Callable[..., Awaitable[object]], *arguments: Any) -> None:
        """Start a task that runs an async function."""


class Driver(Protocol):
    """What drives tasks: a loop, or a simulator."""

    def current_time(self) -> float:
        """Monotonic seconds."""

    async def sleep(self, seconds: float) -> None:
        """Wait for so long."""

    async def checkpoint(self) -> None:
        """Let others run."""

    def event(self) -> Event:
        """One that has not happened."""

    def lock(self) -> Lock:
        """One that nobody holds."""

    def cancel_scope(self, deadline: float, *, shield: bool = False) -> CancelScope:
        """One that is not entered."""

    def open_nursery(self) -> AbstractAsyncContextManager[Nursery]:
        """One that ends with its `async with`, after its tasks."""

    def turns(self) -> Lock:
        """Held for each step of long work: of all of it one is done at a time."""

    async def run_in_thread(self, work: Callable[[], ResultT]) -> ResultT:
        """Do what would hold up the others where it does not."""


class _TrioDriver:
    """Trio's run loop, in which the caller is."""

    def __init__(self) -> None:
        self._turns: RunVar[trio.StrictFIFOLock] = RunVar("turns of long work")
        self.current_time = trio.current_time
        self.sleep = trio.sleep
        self.checkpoint = trio.lowlevel.checkpoint
        self.event = trio.Event
        self.lock = trio.Lock
        self.open_nursery = trio.open_nursery

    def cancel_scope(self, deadline: float, *, shield: bool = False) -> trio.CancelScope:
        return trio.CancelScope(deadline=deadline, shield=shield)

    def turns(self) -> trio.StrictFIFOLock:
        try:
            return self._turns.get()
        except LookupError:
            turns = trio.StrictFIFOLock()
            self._turns.set(turns)
            return turns

    async def run_in_thread(self, work: Callable[[], ResultT]) -> ResultT:
        return await trio.to_thread.run_sync(work)


_driver: Driver = _TrioDriver()


@contextmanager
def driven_by(driver: Driver) -> Iterator[None]:
    """Have everything here waited for by another driver than trio; for simulators."""
    global _driver
    former, _driver = _driver, driver
    try:
        yield
    finally:
        _driver = former


def current_time() -> float:
    """Monotonic seconds, by which deadlines are."""
    return _driver.current_time()


async def sleep(seconds: float) -> None:
    """Wait for so long."""
    await _driver.sleep(seconds)


async def sleep_until(deadline: float) -> None:
    """Wait until then, by `current_time`."""
    await _driver.sleep(max(deadline - _driver.current_time(), 0))


async def sleep_forever() -> None:
    """Wait until cancelled."""
    await _driver.event().wait()


async def checkpoint() -> None:
    """Let others run."""
    await _driver.checkpoint()


def new_event() -> Event:
    """An event that has not happened."""
    return _driver.event()


def new_lock() -> Lock:
    """A lock that nobody holds."""
    return _driver.lock()


def new_cancel_scope(*, shield: bool = False) -> CancelScope:
    """A scope that ends when it is cancelled, or its deadline is set and passes.

    Args:
        shield: whether it goes on where those around it are cancelled.
    """
    return _driver.cancel_scope(math.inf, shield=shield)


def move_on_after(seconds: float) -> CancelScope:
    """A scope that is broken off after so long."""
    return _driver.cancel_scope(_driver.current_time() + seconds)


@contextmanager
def fail_after(seconds: float) -> Iterator[CancelScope]:
    """The same. Raises TimeoutError if it was."""
    with move_on_after(seconds) as scope:
        yield scope
    if scope.cancelled_caught:
        raise TimeoutError(f"not done within {seconds} s")


def open_nursery() -> AbstractAsyncContextManager[Nursery]:
    """Where tasks are started that end with it."""
    return _driver.open_nursery()


def turns_of_long_work() -> Lock:
    """Held for each step of long work: of all of it one is done at a time."""
    return _driver.turns()


async def run_in_thread(work: Callable[[], ResultT]) -> ResultT:
    """Run `work` where it does not hold up the others; what it raises is raised here."""
    return await _driver.run_in_thread(work)
