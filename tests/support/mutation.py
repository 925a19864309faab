"""Runs tests while a function they need does nothing, and says which of them noticed.

`python tests/support/mutation.py` reads pairs of code and test from its input as JSON, and
writes for each whether the test failed. A function is replaced by its code, so that whoever
holds it already, a registry or another module, has the empty one as well.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).resolve().parents[2]
FORKS_MAX = 6
TEST_SECONDS_MAX = 12
"""Who waits in vain for a function that does nothing has noticed, too."""


class Row(NamedTuple):
    """One mechanism.

    Attributes:
        code: `path/to/module.py:name` or `path/to/module.py:Class.name`.
        test: a test's node id.
    """

    code: str
    test: str


def find_function(code: str) -> FunctionType:
    """The function that a row names.

    Raises:
        LookupError: there is none.
    """
    path, _, name = code.partition(":")
    if not (ROOT / path).is_file():
        raise LookupError(f"there is no file {path}")
    found: Any = import_module("odradek." + path.removesuffix(".py").replace("/", "."))
    for part in name.split("."):
        if part not in vars(found):
            raise LookupError(f"there is no {name} in {path}")
        found = vars(found)[part]
    if isinstance(found, property):
        found = found.fget
    elif isinstance(found, cached_property):
        found = found.func
    elif isinstance(found, classmethod | staticmethod):
        found = found.__func__
    found = getattr(found, "__wrapped__", found)
    if not isinstance(found, FunctionType):
        raise LookupError(f"{name} in {path} is no function")
    return found


@contextmanager
def doing_nothing(function: FunctionType) -> Iterator[None]:
    """Let a function return None, a coroutine of it, or yield nothing, as it is of a kind."""
    code = function.__code__
    function.__code__ = _empty_code(code)
    try:
        yield
    finally:
        function.__code__ = code


def _empty_code(code: CodeType) -> CodeType:
    if code.co_freevars:
        raise LookupError(f"{code.co_qualname} needs its surroundings: name another function")

    def nothing(*_: Any, **__: Any) -> None:
        return None

    async def nothing_later(*_: Any, **__: Any) -> None:
        return None

    def no_items(*_: Any, **__: Any) -> Iterator[None]:
        yield from ()

    async def no_items_later(*_: Any, **__: Any) -> Any:
        nothing: tuple[None, ...] = ()
        for each in nothing:
            yield each

    if code.co_flags & CO_COROUTINE:
        return nothing_later.__code__
    if code.co_flags & CO_ASYNC_GENERATOR:
        return no_items_later.__code__
    return no_items.__code__ if code.co_flags & CO_GENERATOR else nothing.__code__


class MutationPlugin:
    """Runs each collected test once for each row that names it, with the row's function empty.

    Each run is a fork of this process, so that none sees what another has left behind.

    Attributes:
        failed: of each row that was run, whether its test failed.
    """

    def __init__(self, rows: Collection[Row]) -> None:
        self.failed: dict[Row, bool] = {}
        self._rows = rows
        self._running: dict[int, tuple[Row, float]] = {}

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Instead of running the test as it is."""
        for row in self._rows:
            if row.test == item.nodeid:
                self._wait_until_running(FORKS_MAX - 1)
                pid = os.fork()
                if pid == 0:
                    os._exit(_run_mutated(item, row))
                self._running[pid] = row, time.monotonic() + TEST_SECONDS_MAX
        return True

    def pytest_sessionfinish(self) -> None:
        """After the last test."""
        self._wait_until_running(0)

    def _wait_until_running(self, count: int) -> None:
        while len(self._running) > count:
            for pid, (row, deadline) in list(self._running.items()):
                done, status = os.waitpid(pid, os.WNOHANG)
                if not done and time.monotonic() > deadline:
                    os.kill(pid, signal.SIGKILL)
                    done, status = os.waitpid(pid, 0)
                if done:
                    del self._running[pid]
                    self.failed[row] = status != 0
            time.sleep(0.002)


def _run_mutated(item: pytest.Item, row: Row) -> int:
    """Run the test of a row in this process; 1 if it fails."""
    with tempfile.TemporaryDirectory(prefix="odradek-mutation-") as folder:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
        with doing_nothing(find_function(row.code)):
            reports = runtestprotocol(item, log=False, nextitem=None)
    return int(any(report.failed for report in reports))


def run_rows(rows: Collection[Row]) -> dict[Row, bool]:
    """Run rows in processes of their own; of each that was run, whether its test failed."""
    done = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps(rows),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
    )
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        raise AssertionError(f"the tests did not run:\n{done.stdout}\n{done.stderr}") from None
    return {Row(code, test): failed for code, test, failed in answer}


def main() -> None:
    """Read rows, run them, write what came out as the last line."""
    rows = [Row(*row) for row in json.load(sys.stdin)]
    plugin = MutationPlugin(rows)
    options = ["-q", "--no-header", "-p", "no:cacheprovider"]
    pytest.main([*options, *dict.fromkeys(row.test for row in rows)], plugins=[plugin])
    print()
    print(json.dumps([[*row, failed] for row, failed in plugin.failed.items()]))


if __name__ == "__main__":
    main()
