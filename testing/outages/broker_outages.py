"""What a test does to a broker from within: its time, disks, groups and producers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..control.verbs import HasControl
from . import clock, connections, coordinators, disks
from .clock import advance, skew

LONGEST_SECONDS = 100 * 365 * 24 * 3600


class BrokerOutages(HasControl):
    """Outages of any broker that has a control channel.

    The broker logs each of them in a line with the word `outage`.
    """

    clock = clock.clock
    expire_metadata_session = connections.expire_metadata_session
    fill_disk = disks.fill_disk
    free_disk = disks.free_disk
    filled_disks = disks.filled_disks
    fail_log_dir = disks.fail_log_dir
    expire_session = coordinators.expire_session
    expire_lock = coordinators.expire_lock
    force_rebalance = coordinators.force_rebalance
    fence_producer = coordinators.fence_producer
    expire_transaction = coordinators.expire_transaction

    def advance_time(
        self, seconds: float = 0, *, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> float:
        """Let time pass for the broker, at once.

        What ends by it has ended when this returns: sessions of groups' members, transactions,
        records past their retention, committed offsets, producers' ids. Clients keep their own
        clocks: one whose session ended gets an error for its next heartbeat, and one that stamps
        its records itself, as most do, stamps them as before, so that they are old when they come.
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
        return advance.on(self.control())(round(total * 1000)) / 1000

    def set_clock_wrong(self, seconds: float) -> None:
        """Have the broker's wall clock be wrong, while no time passes for it.

        Timestamps that it gives or checks are wrong by it, and so is when it finds records too
        old; sessions and waits are not touched.

        Args:
            seconds: ahead, or behind if negative; 0 sets it right.
        """
        skew.on(self.control())(round(seconds * 1000))

    @contextmanager
    def full_disk(self, *, room_bytes: int = 0, number: int | None = None) -> Iterator[None]:
        """`fill_disk` for the length of a `with`."""
        self.fill_disk(room_bytes=room_bytes, number=number)
        try:
            yield
        finally:
            self.free_disk(number=number)
