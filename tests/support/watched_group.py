"""The members of one group, whatever client they are of, under the eyes of a test.

Members tell what happens to them, from threads of their own; the test waits for the group to
settle and asks the checkers. Nothing here sleeps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from .ownership import Change, Ownership, OwnershipEvent, Violation
from .resumption import Commit, Resumption

SETTLE_SECONDS_MAX = 120.0
"""How long a group may take to settle; a machine that is slow and busy needs a while."""


class Member(Protocol):
    """A consumer that is polled by somebody, and can be told to leave."""

    name: str

    def leave(self) -> None:
        """Ask it to commit what it read, leave the group and close; do not wait for it."""

    def wait_until_closed(self) -> None:
        """Wait until it has closed. Raises AssertionError if it does not."""


class WatchedGroup:
    """What members tell of themselves; a class for all threads.

    Args:
        partitions: of the topic that the group reads.
        instance_of: see `Ownership`.
    """

    def __init__(
        self, partitions: Iterable[int], instance_of: Callable[[str], str] = lambda name: name
    ) -> None:
        self.ownership = Ownership(partitions, instance_of)
        self.resumption = Resumption()
        self.changes: dict[str, int] = {}
        """How many callbacks each member has had."""
        self._changed = threading.Condition()
        self._failures: list[tuple[str, BaseException]] = []

    # -- what members tell -----------------------------------------------------------------

    def assigned(
        self, member: str, partitions: Iterable[int], generation: int, at_ns: int | None = None
    ) -> None:
        """The member's callback of assignment."""
        self._tell(member, Change.ASSIGNED, partitions, generation, at_ns)

    def revoked(self, member: str, partitions: Iterable[int], at_ns: int | None = None) -> None:
        """The member's callback of revocation, which has not returned yet."""
        self._tell(member, Change.REVOKED, partitions, -1, at_ns)

    def lost(self, member: str, partitions: Iterable[int], at_ns: int | None = None) -> None:
        """The member's callback of loss."""
        self._tell(member, Change.LOST, partitions, -1, at_ns)

    def leaving(self, member: str, at_ns: int | None = None) -> None:
        """The member is about to leave."""
        self._tell(member, Change.LEFT, (), -1, at_ns)

    def read(self, member: str, partition: int, offset: int) -> None:
        """The member's application got a record."""
        with self._changed:
            self.resumption.tell_read(member, partition, offset)
            self._changed.notify_all()

    def committing(self, partition: int, commit: Commit) -> None:
        """A commit is about to be sent."""
        with self._changed:
            self.resumption.tell_attempt(partition, commit)

    def committed(self, partition: int, commit: Commit) -> None:
        """A commit was answered without an error."""
        with self._changed:
            self.resumption.tell_acknowledged(partition, commit)
            self._changed.notify_all()

    def failed(self, member: str, error: BaseException) -> None:
        """The member ended with an error."""
        with self._changed:
            self._failures.append((member, error))
            self._changed.notify_all()

    def _tell(
        self,
        member: str,
        change: Change,
        partitions: Iterable[int],
        generation: int,
        at_ns: int | None,
    ) -> None:
        with self._changed:
            at_ns = time.monotonic_ns() if at_ns is None else at_ns
            about = frozenset(partitions)
            event = OwnershipEvent(at_ns, member, change, about, generation)
            if self.ownership.tell(event) and change is Change.ASSIGNED:
                for partition in about:
                    self.resumption.tell_owned(member, partition)
            if change is not Change.LEFT:
                self.changes[member] = self.changes.get(member, 0) + 1
            self._changed.notify_all()

    # -- what the test asks ----------------------------------------------------------------

    def wait_until_settled(self, members: Collection[str]) -> None:
        """Wait until these and no others own all partitions, evenly."""
        with self._changed:
            self.wait_until(
                lambda: not self.ownership.why_not_settled(members),
                lambda: (
                    f"{len(members)} members did not settle:"
                    f" {self.ownership.why_not_settled(members)}"
                ),
            )
            if members:
                # Not now: what happened since may be on its way to us.
                self.ownership.mark_settled(max(e.at_ns for e in self.ownership.events))

    def wait_until_read(self, count: int) -> None:
        """Wait until so many different records were read."""
        self.wait_until(
            lambda: self.resumption.read_count() >= count,
            lambda: f"{self.resumption.read_count()} of {count} records came",
        )

    def wait_until(self, holds: Callable[[], bool], otherwise: Callable[[], str]) -> None:
        """Wait until `holds`, which is asked whenever a member has told something.

        Raises:
            AssertionError: it did not within `SETTLE_SECONDS_MAX`, or a member failed.
        """
        with self._changed:
            self._changed.wait_for(lambda: bool(self._failures) or holds(), SETTLE_SECONDS_MAX)
            for member, error in self._failures:
                raise AssertionError(f"{member} failed: {error!r}") from error
            assert holds(), otherwise()

    def violations(self, ends: dict[int, int]) -> list[Violation]:
        """What is wrong with ownership and with what was read, up to these log end offsets."""
        with self._changed:
            return self.ownership.violations() + self.resumption.violations(ends)
