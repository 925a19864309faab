"""Background tasks that no exception ends for good.

What runs beside the requests fails at times: a disk, a peer, a lack of descriptors, a fault of
ours. Tasks that are to last are begun again, after a pause that grows; others end alone. Every
failure is counted by the task's name, and the first of a kind is logged with its traceback.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeAlias

from . import waiting

logger = logging.getLogger(__name__)

BACKOFF_SECONDS_MIN: Final = 0.1
BACKOFF_SECONDS_MAX: Final = 10.0
HEALTHY_SECONDS: Final = 60.0
"""A task that ran for so long before it failed is begun again after the shortest pause."""

AsyncFunction: TypeAlias = Callable[..., Awaitable[None]]


class Supervisor:
    """Runs the background tasks of a broker.

    Args:
        on_end: called when a task has ended or failed: it writes and sends what the task has
            staged and answered.

    Attributes:
        nursery: where tasks are started; set when the broker begins to run.
        failures: how often tasks failed, by their names, which are their functions'.
    """

    def __init__(self, on_end: Callable[[], None] | None = None) -> None:
        self.nursery: waiting.Nursery | None = None
        self.failures: Counter[str] = Counter()
        self._on_end = on_end
        self._is_stopped = False
        self._logged: set[tuple[str, type[BaseException]]] = set()

    def start_task(self, function: AsyncFunction, *arguments: object) -> None:
        """Start a task that runs once, such as the work for one request."""
        self._start(self._run_once, function, arguments)

    def keep_running(self, function: AsyncFunction, *arguments: object) -> None:
        """Start a task that is begun again whenever it fails, until it returns."""
        self._start(self.run, function, *arguments)

    def stop(self) -> None:
        """Start no more tasks: whoever wants one from now on closes what nobody waits for."""
        self._is_stopped = True

    def _start(self, runner: AsyncFunction, *arguments: Any) -> None:
        if self._is_stopped:
            return
        assert self.nursery is not None, "tasks are started while the broker runs"
        self.nursery.start_soon(runner, *arguments)

    async def run(self, function: AsyncFunction, *arguments: object) -> None:
        """Await `function(*arguments)`, again whenever it fails, until it returns."""
        backoff = BACKOFF_SECONDS_MIN
        while True:
            began = waiting.current_time()
            try:
                await function(*arguments)
            except Exception as failure:
                self._note(function, failure)
            else:
                self._end(function)
                return
            self._end(function)
            if waiting.current_time() - began >= HEALTHY_SECONDS:
                backoff = BACKOFF_SECONDS_MIN
            await waiting.sleep(backoff)
            backoff = min(2 * backoff, BACKOFF_SECONDS_MAX)

    async def _run_once(self, function: AsyncFunction, arguments: tuple[object, ...]) -> None:
        try:
            await function(*arguments)
        except Exception as failure:
            self._note(function, failure)
        self._end(function)

    def _end(self, function: AsyncFunction) -> None:
        if self._on_end is not None:
            try:
                self._on_end()
            except Exception as failure:
                self._note(function, failure)

    def _note(self, function: AsyncFunction, failure: Exception) -> None:
        name = task_name(function)
        self.failures[name] += 1
        kind = (name, type(failure))
        is_first = kind not in self._logged
        self._logged.add(kind)
        logger.error(
            "background task %s failed, %d times so far: %s: %s",
            name,
            self.failures[name],
            type(failure).__name__,
            failure,
            exc_info=failure if is_first else None,
        )


def task_name(function: AsyncFunction) -> str:
    """The name by which the failures of a task are counted."""
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__qualname__", type(function).__qualname__)
