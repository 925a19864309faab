"""How much one micro-batch takes: `maxOffsetsPerTrigger`, `minOffsetsPerTrigger`.

The shares are those of Spark's own source (KafkaMicroBatchStream): each partition gets of the
limit what its part of the waiting offsets is, and one offset at least.
"""

from __future__ import annotations

import math

from .cluster import Offsets


def limited(limit: int, start: Offsets, latest: Offsets) -> Offsets:
    """Where a batch ends that takes about `limit` offsets.

    Args:
        limit: of all partitions together.
        start: where the batch begins in each.
        latest: where each ends now.
    """
    sizes = {each: max(latest[each] - start.get(each, 0), 0) for each in latest}
    total = sum(sizes.values())
    if total == 0:
        return latest
    ends = {}
    for each, end in latest.items():
        if sizes[each] == 0:
            ends[each] = end
            continue
        share = limit * sizes[each] / total
        taken = math.ceil(share) if share < 1 else math.floor(share)
        ends[each] = min(end, start.get(each, 0) + taken)
    return ends


class DelayedBatches:
    """Holds a batch back until enough offsets wait, or it has waited long enough.

    Args:
        at_least: so many offsets make a batch.
        delay_ms_max: after so long a smaller one will do.
    """

    def __init__(self, at_least: int, delay_ms_max: int) -> None:
        self._at_least = at_least
        self._delay_ms_max = delay_ms_max
        self._last_batch_ms: int | None = None

    def holds_back(self, start: Offsets, latest: Offsets, now_ms: int) -> bool:
        """Whether to wait for more.

        Args:
            start: where the batch would begin.
            latest: where the partitions end now.
            now_ms: of any clock that only goes forward.
        """
        waited_ms = None if self._last_batch_ms is None else now_ms - self._last_batch_ms
        is_due = waited_ms is None or waited_ms >= self._delay_ms_max
        waiting = sum(max(end - start.get(each, 0), 0) for each, end in latest.items())
        if is_due or waiting >= self._at_least:
            self._last_batch_ms = now_ms
            return False
        return True
