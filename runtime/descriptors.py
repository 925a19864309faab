"""How many file descriptors the process may have open, and what they are kept for.

Out of descriptors nothing works any more that opens a file: no segment, no checkpoint, no module
that is imported late. So connections and open segments have bounds of their own, and a reserve
is left for everything else.
"""

from __future__ import annotations

import os
import resource
from typing import Final, NamedTuple

UNLIMITED: Final = 1 << 20
"""What is planned with where the system has no limit."""
RESERVE_MAX: Final = 64
RESERVE_SHARE: Final = 8
"""Of all descriptors one in so many is in reserve, up to `RESERVE_MAX`."""
SEGMENTS_SHARE: Final = 3
SEGMENTS_MIN: Final = 16
SEGMENTS_MAX: Final = 16_384
CONNECTIONS_MIN: Final = 8


class DescriptorPlan(NamedTuple):
    """What the descriptors of a process are for.

    Attributes:
        limit: so many may be open.
        used: so many were open when this was planned.
        reserve: for imports, checkpoints, the metadata store and connections to other brokers.
        segments: so many segments of logs may be open.
        connections: so many connections of clients.
    """

    limit: int
    used: int
    reserve: int
    segments: int
    connections: int

    @property
    def scarce_from(self) -> int:
        """A descriptor of this number shows that half of the reserve is in use.

        The system gives out the lowest number that is free, so all below it are taken.
        """
        return self.limit - self.reserve // 2


def plan_descriptors(limit: int, used: int) -> DescriptorPlan:
    """Divide the descriptors: a third of what is free for segments, the rest for connections.

    A segment that had to be closed is opened again where it is read; a client that is turned away
    is turned away.

    Args:
        limit: the process's.
        used: how many are open already.
    """
    reserve = min(limit // RESERVE_SHARE, RESERVE_MAX)
    free = max(limit - used - reserve, 0)
    segments = max(min(free // SEGMENTS_SHARE, SEGMENTS_MAX), SEGMENTS_MIN)
    return DescriptorPlan(limit, used, reserve, segments, max(free - segments, CONNECTIONS_MIN))


def raise_limit() -> tuple[int, int]:
    """Raise the soft limit to the hard one, as Java's machine does at its start.

    Returns:
        The limit before and now.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):  # macOS refuses more than its own maximum
        hard = soft
    return _finite(soft), _finite(hard)


def current_limit() -> int:
    """How many descriptors the process may have now."""
    return _finite(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _finite(limit: int) -> int:
    return UNLIMITED if limit == resource.RLIM_INFINITY else limit


def count_open() -> int:
    """How many descriptors are open now."""
    return len(os.listdir("/dev/fd")) - 1  # the listing is one itself
