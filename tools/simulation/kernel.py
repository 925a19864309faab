"""Simulated time, and the tasks that run in it: what trio is to a broker that serves.

The kernel holds one heap of events. Each belongs to a process, and is dropped when that has died,
or kept back while it is frozen. Tasks are coroutines that wait by `runtime.waiting`, of which the
kernel is the driver: the product's own async code runs here, without trio, and no time passes but
from one event to the next.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from functools import partial
from itertools import count
from random import Random
from types import TracebackType, coroutine
from typing import Any, TypeVar, cast

ResultT = TypeVar("ResultT")

START_MS = 1_700_000_000_000
"""The wall time at the beginning."""
JITTER_US = 40
"""A task that may go on does so within this time: in which order of several, the seed decides."""
AT_ONCE = 0.75
"""So often a task goes on in the very event that brings it an answer."""
DISK_US_MAX = 3_000
"""How long a thread's work takes at most, while the disk is well."""


class Cancelled(BaseException):
    """A scope has ended the code that it holds; goes up to its `with`."""

    def __init__(self, scope: CancelScope) -> None:
        self.scope = scope


def _nothing() -> None:
    pass


class Alarm:
    """An event that is to come, unless it is cancelled first.

    Attributes:
        at_us: when it comes.
        process: whose it is; None: the simulation's own.
        function: what is called; None: it was cancelled, or has come.
    """

    __slots__ = ("at_us", "function", "process")

    def __init__(
        self, at_us: int, process: Process | None, function: Callable[[], None] | None
    ) -> None:
        self.at_us = at_us
        self.process = process
        self.function = function

    def cancel(self) -> None:
        """Let it not come; no error if it has."""
        self.function = None


class Process:
    """Whatever has tasks, and can be killed or frozen: one life of a broker, or of a client.

    Args:
        name: for traces.
        check: called after each event of the process, to look at it from outside.

    Attributes:
        settle: called after each event of the process, as its own last act of it.
        held: what came due while it was frozen.
        disk_delay_us: how much longer than usual a thread's work takes.
    """

    def __init__(self, name: str, check: Callable[[], None] = _nothing) -> None:
        self.name = name
        self.check = check
        self.settle: Callable[[], None] = _nothing
        self.is_dead = False
        self.is_frozen = False
        self.disk_delay_us = 0
        self.held: list[Alarm] = []
        self.tasks: dict[Task, None] = {}


class Task:
    """A coroutine under way.

    Attributes:
        scopes: those that it is in, the outermost first.
        abort: undoes what is to wake it; None: it goes on soon, or has not begun.
    """

    __slots__ = ("abort", "coro", "nursery", "process", "scopes")

    def __init__(
        self, coro: Coroutine[Any, Any, Any], process: Process, nursery: Nursery | None
    ) -> None:
        self.coro = coro
        self.process = process
        self.nursery = nursery
        self.scopes: list[CancelScope] = [] if nursery is None else list(nursery.scopes)
        self.abort: Callable[[], object] | None = None

    def cancelled_by(self) -> CancelScope | None:
        """The outermost scope that ends it, as far as no shield is before it."""
        found = None
        for scope in reversed(self.scopes):
            if scope.cancel_called:
                found = scope
            if scope.shield:
                break
        return found


class CancelScope:
    """See `trio.CancelScope`."""

    __slots__ = (
        "_alarm",
        "_deadline",
        "_kernel",
        "_tasks",
        "cancel_called",
        "cancelled_caught",
        "shield",
    )

    def __init__(self, kernel: Kernel, deadline: float, *, shield: bool) -> None:
        self._kernel = kernel
        self._deadline = deadline
        self._alarm: Alarm | None = None
        self._tasks: dict[Task, None] = {}
        self.shield = shield
        self.cancel_called = False
        self.cancelled_caught = False

    @property
    def deadline(self) -> float:
        """When it ends, at the latest."""
        return self._deadline

    @deadline.setter
    def deadline(self, deadline: float) -> None:
        self._deadline = deadline
        if self._tasks:
            self._schedule()

    def cancel(self) -> None:
        """End it."""
        if self.cancel_called:
            return
        self.cancel_called = True
        for task in list(self._tasks):
            self._kernel.deliver_cancellation(task)

    def join(self, task: Task) -> None:
        """A task is in it."""
        self._tasks[task] = None

    def leave(self, task: Task) -> None:
        """A task is in it no more."""
        self._tasks.pop(task, None)

    def __enter__(self) -> CancelScope:
        task = self._kernel.task
        task.scopes.append(self)
        self._tasks[task] = None
        if self._deadline < math.inf:
            self._schedule()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        for task in self._tasks:
            if self in task.scopes:
                task.scopes.remove(self)
        self._tasks.clear()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if isinstance(error, Cancelled) and error.scope is self:
            self.cancelled_caught = True
            return True
        return False

    def _schedule(self) -> None:
        """Look at the deadline when it is there; an alarm before it looks for another one then."""
        alarm = self._alarm
        if self._deadline == math.inf or (alarm is not None and alarm.at_us <= self._deadline_us()):
            return
        if alarm is not None:
            alarm.cancel()
        kernel = self._kernel
        delay_us = max(self._deadline_us() - kernel.now_us, 0)
        self._alarm = kernel.after(delay_us, self._look, kernel.process)

    def _deadline_us(self) -> int:
        """The deadline in the kernel's own unit: seconds may differ from it by a rounding."""
        return math.ceil(self._deadline * 1_000_000)

    def _look(self) -> None:
        self._alarm = None
        if self._deadline == math.inf or self.cancel_called:
            return
        if self._kernel.now_us >= self._deadline_us():
            self.cancel()
        else:
            self._schedule()


class Event:
    """See `trio.Event`."""

    __slots__ = ("_is_set", "_kernel", "_waiting")

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._is_set = False
        self._waiting: dict[Task, None] = {}

    def is_set(self) -> bool:
        """Whether it has happened."""
        return self._is_set

    def set(self) -> None:
        """It happens."""
        self._is_set = True
        if self._waiting:
            waiting, self._waiting = self._waiting, {}
            for task in waiting:
                self._kernel.wake(task)

    async def wait(self) -> None:
        """Wait until it has."""
        if not self._is_set:
            task = self._kernel.task
            self._waiting[task] = None
            await self._kernel.park(partial(self._waiting.pop, task, None))


class Lock:
    """See `trio.Lock`."""

    __slots__ = ("_is_held", "_kernel", "_waiting")

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._is_held = False
        self._waiting: deque[Task] = deque()

    async def acquire(self) -> None:
        """Wait until nobody holds it."""
        if self._is_held:
            task = self._kernel.task
            self._waiting.append(task)
            await self._kernel.park(partial(self._waiting.remove, task))
        else:
            self._is_held = True

    def release(self) -> None:
        """Let the next one have it."""
        if self._waiting:
            self._kernel.wake(self._waiting.popleft())
        else:
            self._is_held = False

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


class FreeLock:
    """A lock that nobody ever waits for: what it holds is over before it could."""

    async def acquire(self) -> None:
        """It is held."""

    def release(self) -> None:
        """It is not."""

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass


class Nursery:
    """See `trio.Nursery`.

    Args:
        kernel: runs its tasks.
        process: whose tasks they are; that of the task that opens it if None.
    """

    def __init__(self, kernel: Kernel, process: Process | None = None) -> None:
        self.cancel_scope = CancelScope(kernel, math.inf, shield=False)
        self.scopes: list[CancelScope] = []
        self._kernel = kernel
        self._process = process or kernel.process
        self._children: dict[Task, None] = {}
        self._failures: list[Exception] = []
        self._idle: Event | None = None

    def start_soon(self, function: Callable[..., Awaitable[object]], *arguments: Any) -> None:
        """Start a task."""
        coro = cast("Coroutine[Any, Any, Any]", function(*arguments))
        assert self._process is not None
        task = Task(coro, self._process, self)
        for scope in task.scopes:
            scope.join(task)
        self._children[task] = None
        self._kernel.start(task)

    def child_ended(self, task: Task, failure: Exception | None) -> None:
        """One of them has come to its end."""
        self._children.pop(task, None)
        for scope in task.scopes:
            scope.leave(task)
        if failure is not None:
            self._failures.append(failure)
            self.cancel_scope.cancel()
        if not self._children and self._idle is not None:
            self._idle.set()

    async def __aenter__(self) -> Nursery:
        self.cancel_scope.__enter__()
        self.scopes = list(self._kernel.task.scopes)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if isinstance(error, GeneratorExit):  # its process was killed: nobody waits any more
            return False
        if error is not None:
            self.cancel_scope.cancel()
        while self._children:
            self._idle = Event(self._kernel)
            try:
                await self._idle.wait()
            except Cancelled as cancelled:
                error = error or cancelled
                self.cancel_scope.cancel()
                with CancelScope(self._kernel, math.inf, shield=True):
                    while self._children:
                        self._idle = Event(self._kernel)
                        await self._idle.wait()
        is_caught = self.cancel_scope.__exit__(kind, error, traceback)
        if self._failures:
            raise ExceptionGroup("tasks failed", self._failures)
        if error is None or is_caught:
            return True
        raise error


class Kernel:
    """Time, events and tasks of one simulation: the driver of `runtime.waiting`.

    Args:
        rng: decides in which order tasks go on.

    Attributes:
        now_us: microseconds since the beginning.
        events: how many there were.
        process: whose event is under way; None: the simulation's own.
        on_power_cut: called with the process whose disk has lost its power in an event.
    """

    def __init__(self, rng: Random) -> None:
        self.now_us = 0
        self.events = 0
        self.process: Process | None = None
        self.on_power_cut: Callable[[Process], None] = lambda process: None
        self.power_cut: type[BaseException] = Cancelled
        self._rng = rng
        self._heap: list[tuple[int, int, Alarm]] = []
        self._order = count()
        self._task: Task | None = None
        self._only_wakes = False
        self._woken: list[Task] | None = None
        self._turns = FreeLock()

    @property
    def task(self) -> Task:
        """The one that runs."""
        assert self._task is not None, "only a task waits"
        return self._task

    # -- events --------------------------------------------------------------------------------

    def after(
        self, delay_us: int, function: Callable[[], None], process: Process | None = None
    ) -> Alarm:
        """Call a function in so long, as an event of a process, unless that is cancelled."""
        at_us = self.now_us + delay_us
        alarm = Alarm(at_us, process, function)
        heapq.heappush(self._heap, (at_us, next(self._order), alarm))
        return alarm

    def run_until(self, end_us: int) -> None:
        """Let everything happen that is due until then."""
        heap = self._heap
        while heap and heap[0][0] <= end_us:
            at_us, _, alarm = heapq.heappop(heap)
            function, process = alarm.function, alarm.process
            if function is None:
                continue
            self.now_us = at_us
            if process is None:
                function()
            elif process.is_dead:
                continue
            elif process.is_frozen:
                process.held.append(alarm)
            else:
                alarm.function = None
                self.run(process, function)
        self.now_us = max(self.now_us, end_us)

    def run(self, process: Process, function: Callable[[], None]) -> None:
        """An event of a process, and what follows from it in the same moment."""
        self.events += 1
        former, self.process = self.process, process
        self._only_wakes = False
        try:
            function()
            if self._only_wakes:
                return
            process.settle()
        except self.power_cut:
            self.on_power_cut(process)
        finally:
            self.process = former
        if not process.is_dead:
            process.check()

    def bring(self, answer: Callable[[], None]) -> None:
        """Do what only wakes tasks. Often they go on in this very event.

        Else the process is as it was, and need not be looked at.
        """
        woken: list[Task] = []
        if self._rng.random() < AT_ONCE:
            self._woken = woken
        try:
            answer()
        finally:
            self._woken = None
        self._only_wakes = not woken
        for task in woken:
            self._step(task, None)

    def thaw(self, process: Process) -> None:
        """A frozen process goes on: first with what came due meanwhile."""
        process.is_frozen = False
        held, process.held = process.held, []
        for alarm in held:
            heapq.heappush(self._heap, (self.now_us, next(self._order), alarm))

    def kill(self, process: Process) -> None:
        """A process is no more: its tasks end where they are, and nothing of them does anything."""
        process.is_dead = True
        tasks, process.tasks = process.tasks, {}
        former, self.process = self.process, process
        for task in tasks:
            with suppress(BaseException):  # whatever it does at its end, it does to nobody
                task.coro.close()
        self.process = former

    # -- tasks ---------------------------------------------------------------------------------

    def start(self, task: Task) -> None:
        """A task begins soon."""
        task.process.tasks[task] = None
        self._resume(task)

    def spawn(self, process: Process, work: Coroutine[Any, Any, Any]) -> None:
        """Start a task that belongs to no nursery: what it raises ends the simulation."""
        self.start(Task(work, process, None))

    @coroutine
    def park(self, abort: Callable[[], object]) -> Generator[None, None, None]:
        """Wait until woken. Raises Cancelled; `abort` undoes what was to wake it."""
        task = self.task
        scope = task.cancelled_by()
        if scope is not None:
            abort()
            raise Cancelled(scope)
        task.abort = abort
        yield

    def wake(self, task: Task) -> None:
        """A parked task goes on soon."""
        if task.abort is None:
            return
        if self._woken is None:
            self._resume(task)
        else:
            task.abort = None
            self._woken.append(task)

    def deliver_cancellation(self, task: Task) -> None:
        """A scope that a task is in was cancelled: it goes on with that, if it waits."""
        if task.abort is None:
            return
        scope = task.cancelled_by()
        if scope is not None:
            task.abort()
            self._resume(task, Cancelled(scope))

    def _resume(self, task: Task, error: BaseException | None = None) -> None:
        task.abort = None
        delay_us = int(self._rng.random() * JITTER_US)
        self.after(delay_us, partial(self._step, task, error), task.process)

    def _step(self, task: Task, error: BaseException | None) -> None:
        task.abort = None
        former, self._task = self._task, task
        failure: Exception | None = None
        try:
            if error is None:
                task.coro.send(None)
            else:
                task.coro.throw(error)
            return
        except (StopIteration, Cancelled):
            pass
        except Exception as raised:
            if task.nursery is None:
                raise
            failure = raised
        finally:
            self._task = former
        task.process.tasks.pop(task, None)
        if task.nursery is not None:
            task.nursery.child_ended(task, failure)

    # -- the driver of `runtime.waiting` -------------------------------------------------------

    def current_time(self) -> float:
        """Seconds since the beginning."""
        return self.now_us / 1_000_000

    async def sleep(self, seconds: float) -> None:
        """Wait for so long."""
        await self.sleep_us(int(min(seconds, 1e9) * 1_000_000))

    async def sleep_us(self, delay_us: int) -> None:
        """Wait for so many microseconds."""
        task = self.task
        delay_us += int(self._rng.random() * JITTER_US)
        alarm = self.after(delay_us, partial(self._step, task, None), task.process)
        await self.park(alarm.cancel)

    async def checkpoint(self) -> None:
        """Let others run."""
        await self.sleep_us(0)

    def event(self) -> Event:
        """One that has not happened."""
        return Event(self)

    def lock(self) -> Lock:
        """One that nobody holds."""
        return Lock(self)

    def cancel_scope(self, deadline: float, *, shield: bool = False) -> CancelScope:
        """One that is not entered."""
        return CancelScope(self, deadline, shield=shield)

    def open_nursery(self) -> Nursery:
        """One that ends with its `async with`."""
        return Nursery(self)

    def turns(self) -> FreeLock:
        """Steps are short, and nobody waits between two."""
        return self._turns

    async def run_in_thread(self, work: Callable[[], ResultT]) -> ResultT:
        """Do what takes a while, at some moment of it."""
        slow_us = self.task.process.disk_delay_us
        await self.sleep_us(int(self._rng.random() * DISK_US_MAX) + slow_us)
        result = work()
        await self.sleep_us(0)
        return result
