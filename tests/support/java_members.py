"""Members of a watched group that are Java's KafkaConsumers, all in one Java process.

`tests/interop/java/.../GroupMembers.java` runs them; its standard input says who joins and who
leaves, and its output in lines what happens to each. `System.nanoTime` and Python's monotonic
clock are the same clock on Linux.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from .line_process import LineProcess
from .resumption import Commit
from .watched_group import Member, WatchedGroup

PROGRAM = "odradek.interop.GroupMembers"
CLOSE_SECONDS_MAX = 120.0


class JavaFailure(Exception):
    """What a Java consumer threw."""


class JavaMember:
    """One of the process's consumers."""

    def __init__(self, process: JavaMembers, name: str) -> None:
        self.name = name
        self.closed = threading.Event()
        self._process = process

    def leave(self) -> None:
        self._process.say(f"leave {self.name}")

    def wait_until_closed(self) -> None:
        assert self.closed.wait(CLOSE_SECONDS_MAX), f"{self.name} does not close"


class JavaMembers(LineProcess):
    """The Java process; a context manager that ends it.

    Args:
        java_command: what goes before the name of a class.
        watch: hears of what happens to the members.
        bootstrap: the broker.
        topic: what they read.
        group: its id.
        settings: further ones of the consumers.
        errors: a file for the process's standard error.
    """

    def __init__(
        self,
        java_command: Sequence[str],
        watch: WatchedGroup,
        bootstrap: str,
        topic: str,
        group: str,
        settings: dict[str, str],
        errors: Path,
    ) -> None:
        self._watch = watch
        self._members: dict[str, JavaMember] = {}
        pairs = [f"{key}={value}" for key, value in settings.items()]
        command = [*java_command, PROGRAM, bootstrap, topic, group, *pairs]
        super().__init__(command, self._hear_line, errors)

    def join(self, name: str, instance: str | None) -> Member:
        """Start a member, static if it has an instance id."""
        member = self._members[name] = JavaMember(self, name)
        self.say(" ".join(["join", name, *([] if instance is None else [instance])]))
        return member

    def kill(self) -> None:
        """SIGKILL: its members end at once, and leave no group."""
        super().kill()
        ended_ns = time.monotonic_ns()  # others may own by and by what was theirs
        self.wait_until_heard()
        for member in self._members.values():
            if not member.closed.is_set():
                self._watch.leaving(member.name, ended_ns)
                member.closed.set()

    def _hear_line(self, line: str) -> None:
        at_ns, name, what, *details = line.split(" ", 3)
        try:
            self._hear(int(at_ns), name, what, " ".join(details))
        except Exception as error:
            self._watch.failed(name, error)

    def _hear(self, at_ns: int, name: str, what: str, details: str) -> None:
        watch = self._watch
        if what == "assigned":
            generation, _, partitions = details.partition(" ")
            watch.assigned(name, _numbers(partitions), int(generation), at_ns)
        elif what == "revoked":
            watch.revoked(name, _numbers(details), at_ns)
        elif what == "lost":
            watch.lost(name, _numbers(details), at_ns)
        elif what == "leaving":
            watch.leaving(name, at_ns)
        elif what == "read":
            watch.read(name, *map(int, details.split()))
        elif what in ("committing", "committed"):
            partition, offset, metadata = details.split(" ", 2)
            tell = watch.committing if what == "committing" else watch.committed
            tell(int(partition), Commit(int(offset), metadata))
        elif what == "closed":
            self._members[name].closed.set()
        else:
            watch.failed(name, JavaFailure(f"{what} {details}"))


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]
