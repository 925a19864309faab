"""What the interpreter does for a request: calls, bytecodes, system calls, memory.

Nothing here depends on how fast the machine is, or what else it does.
"""

from __future__ import annotations

import gc
import statistics
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import odradek

ROOT = Path(odradek.__file__ or "").parent

SYSTEM_CALLS = frozenset(
    {
        "close",
        "fstat",
        "ftruncate",
        "lseek",
        "modify",
        "open",
        "poll",
        "pread",
        "preadv",
        "pwrite",
        "pwritev",
        "read",
        "readinto",
        "recv",
        "recv_into",
        "recvmsg",
        "register",
        "send",
        "sendfile",
        "sendmsg",
        "splice",
        "stat",
        "unregister",
        "write",
        "writev",
    }
)
"""Functions of C by which Python asks the kernel for something; `modify` and its like are an
epoll's. The clocks are not among them: reading those does not enter the kernel."""

Work = Callable[[], None]


class Counts(NamedTuple):
    """What some requests made the interpreter do, all together.

    Attributes:
        python_calls: functions of Python that were entered; a generator counts each time.
        c_calls: functions of C that Python called.
        bytecodes: instructions of the interpreter.
        system_calls: those of the C calls that enter the kernel.
    """

    python_calls: int
    c_calls: int
    bytecodes: int
    system_calls: int


class Node:
    """A function in a tree of calls, or one of C."""

    __slots__ = ("calls", "children", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0
        self.children: dict[str, Node] = {}

    def child(self, name: str) -> Node:
        """The node of what this one called."""
        found = self.children.get(name)
        if found is None:
            found = self.children[name] = Node(name)
        return found

    def as_json(self, requests: int) -> dict[str, Any]:
        """Calls per request and what was called, by name."""
        return {
            name: [node.calls / requests, node.as_json(requests)]
            for name, node in self.children.items()
        }


class CallCounter:
    """Counts calls, and keeps them as a tree."""

    def __init__(self) -> None:
        self.python_calls = 0
        self.c_calls = 0
        self.system_calls = 0
        self.root = Node("")
        self._stack = [self.root]

    def run(self, work: Work) -> None:
        """Count what `work` calls."""
        sys.setprofile(self._note)
        try:
            work()
        finally:
            sys.setprofile(None)
        del self._stack[1:]

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        stack = self._stack
        if event == "call":
            self.python_calls += 1
            self._enter(name_of(frame.f_code))
        elif event == "c_call":
            if argument is sys.setprofile:
                return
            self.c_calls += 1
            if enters_the_kernel(argument):
                self.system_calls += 1
            self._enter(name_of_c(argument))
        elif len(stack) > 1 and argument is not sys.setprofile:
            stack.pop()

    def _enter(self, name: str) -> None:
        node = self._stack[-1].child(name)
        node.calls += 1
        self._stack.append(node)


class BytecodeCounter:
    """Counts the interpreter's instructions, of each function too."""

    def __init__(self) -> None:
        self.by_code: Counter[CodeType] = Counter()

    @property
    def total(self) -> int:
        """Of all functions."""
        return sum(self.by_code.values())

    def run(self, work: Work) -> None:
        """Count what `work` executes, but for its own frame."""
        sys.settrace(self._trace)
        try:
            work()
        finally:
            sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "call":
            frame.f_trace_opcodes = True
            frame.f_trace_lines = False
        elif event == "opcode":
            self.by_code[frame.f_code] += 1
        return self._trace


class PeakMemory:
    """How much more memory than before a piece of work had at its worst moment."""

    def __init__(self) -> None:
        self._peaks: list[int] = []

    @property
    def median(self) -> int:
        """In bytes."""
        return int(statistics.median_high(self._peaks))

    def run(self, work: Work) -> None:
        """Watch `work`; `tracemalloc` must have been started."""
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        work()
        self._peaks.append(tracemalloc.get_traced_memory()[1] - before)


def without_collections(work: Work) -> None:
    """Do something while nothing is collected in between, after all that could be was."""
    gc.collect()
    gc.disable()
    try:
        work()
    finally:
        gc.enable()


def name_of(code: CodeType) -> str:
    """A function as a reader finds it: its file from the package's root, and its name.

    Generated codecs and what lies outside the package have the name of their file only.
    """
    path = Path(code.co_filename)
    path = path.relative_to(ROOT) if path.is_relative_to(ROOT) else Path(*path.parts[-2:])
    return f"{path} {code.co_qualname}"


def name_of_c(function: Any) -> str:
    """A function of C by what it belongs to and its name."""
    return f"{owner_of(function)}{function.__name__}"


def owner_of(function: Any) -> str:
    """The type or module that a function of C belongs to, with a dot; "" for a builtin."""
    itself = getattr(function, "__self__", None)
    if itself is None:
        objclass = getattr(function, "__objclass__", None)
        return "" if objclass is None else f"{objclass.__name__}."
    if isinstance(itself, type(sys)):
        return "" if itself.__name__ == "builtins" else f"{itself.__name__}."
    kind = itself if isinstance(itself, type) else type(itself)
    return f"{kind.__name__}."


def enters_the_kernel(function: Any) -> bool:
    """Whether a function of C is a system call by another name."""
    if function.__name__ not in SYSTEM_CALLS:
        return False
    return owner_of(function).rstrip(".") in {"posix", "epoll", "socket", "FileIO", "select"}
