"""Members of a consumer group, each polled by a thread of its own, watched by the test.

The consumers are any client library's: a member is made of three functions. The test waits
for what it wants to see (`GroupWatch.wait_until`); nothing here sleeps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

WAIT_SECONDS_MAX = 120.0


class GroupWatch:
    """What the members of one group own and have read."""

    def __init__(self) -> None:
        self.members: list[GroupMember] = []
        self._changed = threading.Condition()

    def add(
        self,
        name: str,
        poll: Callable[[], Iterable[str]],
        assignment: Callable[[], set[int]],
        close: Callable[[], object],
    ) -> GroupMember:
        """Start polling a consumer.

        Args:
            name: for messages.
            poll: waits a moment for records, returns their values.
            assignment: the partitions it owns now.
            close: leaves the group.
        """
        member = GroupMember(self._changed, name, poll, assignment, close)
        self.members.append(member)
        member.start()
        return member

    def wait_until_balanced(self, counts: list[int]) -> None:
        """Wait until the members that have not left own so many partitions, none of them twice.

        Args:
            counts: partitions per member, in ascending order.
        """

        def is_balanced() -> bool:
            owned = [member.partitions for member in self.members if not member.has_left]
            disjoint = len(set().union(*owned)) == sum(len(partitions) for partitions in owned)
            return disjoint and sorted(len(partitions) for partitions in owned) == counts

        self.wait_until(is_balanced, f"a balance of {counts}")

    def require_sharing(
        self, join: Callable[[str], GroupMember], produce: Callable[[list[str]], object]
    ) -> None:
        """Up to three members share six partitions, and read what is written meanwhile once.

        Args:
            join: adds a member of this name.
            produce: writes values to the partitions in turn.
        """
        written: list[str] = []

        def produce_and_wait(phase: str, balance: list[int]) -> None:
            self.wait_until_balanced(balance)
            values = [f"{phase}-{number}" for number in range(60)]
            produce(values)
            written.extend(values)
            self.wait_until_read(set(written))

        join("first")
        produce_and_wait("alone", [6])
        second = join("second")
        produce_and_wait("two", [3, 3])
        third = join("third")
        produce_and_wait("three", [2, 2, 2])
        third.leave()
        produce_and_wait("two again", [3, 3])
        second.leave()
        produce_and_wait("alone again", [6])
        self.leave_all()
        assert sorted(self.all_received()) == sorted(written)
        assert all(member.received for member in self.members)

    def wait_until_read(self, values: set[str]) -> None:
        """Wait until the members together have read all of `values`."""
        self.wait_until(lambda: values <= set(self.all_received()), f"{len(values)} records")

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until `condition` holds; it is asked after each poll of each member.

        Raises:
            AssertionError: it did not within `WAIT_SECONDS_MAX`, or a member failed.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: condition() or any(member.failure for member in self.members),
                WAIT_SECONDS_MAX,
            )
            for member in self.members:
                if member.failure is not None:
                    raise AssertionError(f"{member.name} failed") from member.failure
            assert condition(), f"waited for {what}, there is: " + "; ".join(
                f"{member.name} owns {sorted(member.partitions)}, read {len(member.received)}"
                for member in self.members
            )

    def all_received(self) -> list[str]:
        """The values that all members have read, doubles and all."""
        return [value for member in self.members for value in member.received]

    def leave_all(self) -> None:
        """Let all members leave."""
        for member in self.members:
            member.leave()


class GroupMember:
    """One consumer and the thread that polls it; made by `GroupWatch.add`."""

    def __init__(
        self,
        changed: threading.Condition,
        name: str,
        poll: Callable[[], Iterable[str]],
        assignment: Callable[[], set[int]],
        close: Callable[[], object],
    ) -> None:
        self.name = name
        self.partitions: set[int] = set()
        self.received: list[str] = []
        self.has_left = False
        self.failure: Exception | None = None
        self._changed = changed
        self._poll = poll
        self._assignment = assignment
        self._close = close
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start polling."""
        self._thread.start()

    def leave(self) -> None:
        """Stop polling and leave the group, committing what was read."""
        self._stopping.set()
        self._thread.join(WAIT_SECONDS_MAX)
        assert not self._thread.is_alive(), f"{self.name} does not close"

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                received = list(self._poll())
                partitions = self._assignment()
                with self._changed:
                    self.received += received
                    self.partitions = partitions
                    self._changed.notify_all()
        except Exception as error:
            self.failure = error
        finally:
            self._close()
            with self._changed:
                self.has_left = True
                self.partitions = set()
                self._changed.notify_all()
