"""When offsets are looked through for what is past its retention (KIP-211).

All groups every `offsets.retention.check.interval.ms`, some at a time: a tombstone for each of ten
thousand groups takes most of a second, and requests are served in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ....runtime.timers import Timer
from ..removing import AnyGroup, Removing
from ..runtime import GroupRuntime
from ..shards import GroupShards

GROUPS_PER_STEP = 50
"""After so many groups others get their turn; the loop is held for a few milliseconds."""


class OffsetExpiry:
    """The rounds through all groups.

    Args:
        runtime: settings and timers.
        shards: the groups.
        removing: removes what has expired of one.
    """

    def __init__(self, runtime: GroupRuntime, shards: GroupShards, removing: Removing) -> None:
        self._runtime = runtime
        self._shards = shards
        self._removing = removing
        self._timer: Timer | None = None

    def start(self) -> None:
        """Begin a round after each interval."""
        self._timer = self._runtime.schedule(
            self._runtime.settings.offsets_retention_check_interval_ms,
            lambda: self._take_step(iter(self._all_groups())),
        )

    def close(self) -> None:
        """Begin no round any more, and end the one that is under way."""
        if self._timer is not None:
            self._timer.cancel()

    def run(self) -> None:
        """A whole round at once."""
        for group in self._all_groups():
            self._removing.expire(group)

    def _take_step(self, groups: Iterator[AnyGroup]) -> None:
        step = list(islice(groups, GROUPS_PER_STEP))
        # What comes next is arranged before anything can go wrong.
        if len(step) < GROUPS_PER_STEP:
            self.start()
        else:
            self._timer = self._runtime.schedule(0, lambda: self._take_step(groups))
        for group in step:
            if self._shards.find_known(group.group_id) is group:  # not gone since the round began
                self._removing.expire(group)

    def _all_groups(self) -> list[AnyGroup]:
        return [*self._shards.groups.values(), *self._shards.consumer_groups.values()]
