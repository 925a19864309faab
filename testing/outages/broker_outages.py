"""What a test does to a broker from within: its time, disks, groups and producers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..control.client import ControlClient

LONGEST_SECONDS = 100 * 365 * 24 * 3600
LONG_SECONDS = 60.0
"""How long to wait for what may take a broker a while, such as retention in many logs."""


class BrokerOutages(ABC):
    """Outages of any broker that has a control channel.

    Each is told in the broker's log, by a line with the word `outage`. All raise `ControlError`
    where the broker cannot do it, with a sentence that says why.
    """

    @abstractmethod
    def control(self) -> ControlClient:
        """The control channel of the running broker."""

    # -- time -------------------------------------------------------------------------------

    def advance_time(
        self, seconds: float = 0, *, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> float:
        """Let time pass for the broker, at once.

        What ends by it has ended when this returns: sessions of groups' members, transactions,
        records past their retention, committed offsets, producers' ids. Clients keep their own
        clocks: one whose session ended finds out by its next heartbeat, and one that stamps its
        records itself, as most do, stamps them as before, so that they are old when they come.
        Followers and connections are not missed for it. `reset` sets the clock right again.

        Args:
            seconds, minutes, hours, days: together how much; not negative.

        Returns:
            How many seconds the broker is ahead of the system now.

        Raises:
            ValueError: time does not go back, nor by more than a hundred years forward;
                `set_clock_wrong` sets the wall clock back.
        """
        total = seconds + 60 * (minutes + 60 * (hours + 24 * days))
        if total < 0:
            raise ValueError(
                f"time cannot go back by {-total:g} s; set_clock_wrong can set the wall clock back"
            )
        if total > LONGEST_SECONDS:
            raise ValueError(f"{total:g} s are more than the hundred years that can pass at once")
        milliseconds = round(total * 1000)
        ahead_ms: int = self.control().call(
            "time.advance", milliseconds=milliseconds, answer_within=LONG_SECONDS
        )
        return ahead_ms / 1000

    def set_clock_wrong(self, seconds: float) -> None:
        """Have the broker's wall clock be wrong, while no time passes for it.

        Timestamps that it gives or checks are wrong by it, and so is when it finds records too
        old; sessions and waits are not touched.

        Args:
            seconds: ahead, or behind if negative; 0 sets it right.
        """
        self.control().call("time.skew", milliseconds=round(seconds * 1000))

    def clock(self) -> float:
        """What time it is for the broker, in seconds since the epoch."""
        read: dict[str, int] = self.control().call("time.read")
        return read["now_ms"] / 1000

    def expire_metadata_session(self) -> int:
        """End the broker's session with the metadata store, as ZooKeeper does to a silent broker.

        It is gone from the cluster, and no controller any more, until it has begun another: then
        it registers again by itself, and follows who leads now. Connections of clients stay.

        Returns:
            The number of the session that ended.
        """
        session: int = self.control().call("session.expire", answer_within=LONG_SECONDS)
        return session

    # -- disks ------------------------------------------------------------------------------

    def fill_disk(self, *, room_bytes: int = 0, number: int | None = None) -> None:
        """Fill the disks of the log directories: appends are refused until there is room.

        Producers get KAFKA_STORAGE_ERROR; what was acknowledged stays, and can be read. The
        cluster's metadata are on another disk.

        Args:
            room_bytes: how much can still be written.
            number: of the log directory, from 0; None: all of them.
        """
        self.control().call("disk.fill", room_bytes=room_bytes, number=number)

    def free_disk(self, *, number: int | None = None) -> None:
        """Give the disks room again."""
        self.control().call("disk.free", number=number)

    @contextmanager
    def full_disk(self, *, room_bytes: int = 0, number: int | None = None) -> Iterator[None]:
        """The same for the length of a `with`."""
        self.fill_disk(room_bytes=room_bytes, number=number)
        try:
            yield
        finally:
            self.free_disk(number=number)

    def fail_log_dir(self, number: int = 0) -> str:
        """Break the disk of a log directory: it is offline until a restart.

        Others lead its partitions then, if there are others. With its last log directory a
        broker ends, as Kafka does, a moment after this returns.

        Args:
            number: of the log directory, from 0.

        Returns:
            Its path.
        """
        path: str = self.control().call("disk.fail", number=number)
        return path

    # -- groups and producers ---------------------------------------------------------------

    def expire_session(self, group: str, member: str | None = None) -> list[str]:
        """End the session of a group's member now: it is out, and its partitions go to others.

        The member hears of it by its next heartbeat, and joins again.

        Args:
            member: a member id, an instance id or a client id; None: all of them.

        Returns:
            The member ids of those that are out.
        """
        expired: list[str] = self.control().call(
            "groups.expire_session", group=group, member=member
        )
        return expired

    def force_rebalance(self, group: str) -> None:
        """Have a group's members share its partitions anew."""
        self.control().call("groups.rebalance", group=group)

    def fence_producer(self, transactional_id: str) -> tuple[int, int]:
        """Fence a producer off, as another one with its transactional id does at its start.

        Returns:
            The producer id and epoch that are in force now.
        """
        producer_id, epoch = self.control().call(
            "transactions.fence", transactional_id=transactional_id
        )
        return producer_id, epoch

    def expire_transaction(self, transactional_id: str) -> None:
        """Abort a producer's open transaction as one that took too long; its producer is fenced."""
        self.control().call("transactions.expire", transactional_id=transactional_id)
