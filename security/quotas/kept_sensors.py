"""What measures each of many clients or addresses, which they may make up as they like.

Kafka forgets sensors that were not used for an hour (InactiveSensorExpirationTimeSeconds) and keeps
any number of others. Here there is a bound on their number, too.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final, TypeVar

from .rate import QuotaSensor, TokenBucket

INACTIVE_MS: Final = 3_600_000
"""Who has used nothing for so long is forgotten."""
LOOK_EVERY: Final = 1_000
"""So many new sensors come before the inactive ones are looked for."""
SENSORS_MAX: Final = 10_000
"""One more, and the `LOOK_EVERY` that were not used for longest are forgotten."""

KeyT = TypeVar("KeyT")
SensorT = TypeVar("SensorT", QuotaSensor, TokenBucket)


class KeptSensors(dict[KeyT, SensorT]):
    """Sensors by those who share one; more come by `keep` only.

    Attributes:
        on_forgotten: called when some have been forgotten.
    """

    def __init__(self) -> None:
        super().__init__()
        self.on_forgotten: Callable[[], None] = lambda: None
        self._kept = 0

    def keep(self, key: KeyT, sensor: SensorT, now_ms: int) -> None:
        """Add one that counts as used now; others are forgotten if it is time, or too many.

        Args:
            key: who shares it.
            sensor: measures them.
            now_ms: monotonic time.
        """
        self._kept += 1
        if self._kept % LOOK_EVERY == 0 or len(self) >= SENSORS_MAX:
            self._forget(now_ms)
        sensor.last_ms = now_ms
        self[key] = sensor

    def _forget(self, now_ms: int) -> None:
        forgotten = [key for key, sensor in self.items() if now_ms - sensor.last_ms >= INACTIVE_MS]
        if len(self) - len(forgotten) >= SENSORS_MAX:
            oldest = heapq.nsmallest(LOOK_EVERY, self.items(), key=lambda item: item[1].last_ms)
            forgotten = [key for key, _ in oldest]
        for key in forgotten:
            del self[key]
        if forgotten:
            self.on_forgotten()
