"""What this broker can do in several generations, and which one its cluster has settled on.

Kafka calls it feature versioning (KIP-584): each broker says which levels of a feature it
supports, and the cluster finalizes one level, which all brokers then keep to. Operators move
it with UpdateFeatures, once all brokers are new enough.

Of the features that Kafka 4.3 has, those are here that something in odradek goes by. A level
of 0 means that the feature is not in use.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from ..common.live_broker import FeatureRange
from ..common.named_tuple import NamedTuple

logger = logging.getLogger(__name__)

GROUP_VERSION: Final = "group.version"
"""1: consumer groups of KIP-848 beside classic ones."""

SHARE_VERSION: Final = "share.version"
"""1: share groups (KIP-932)."""

STREAMS_VERSION: Final = "streams.version"
"""1: streams groups (KIP-1071)."""

TRANSACTION_VERSION: Final = "transaction.version"
"""1: the transaction log in flexible records. 2: the producer's epoch grows with every
transaction, and partitions join one by being written to (KIP-890)."""

SECOND_GENERATION: Final = 2
"""The `transaction.version` from which each transaction has an epoch of its own (KIP-890)."""

EPOCH_UNKNOWN: Final = -1
"""It is not known what is finalized."""

SUPPORTED: Final = (
    FeatureRange(GROUP_VERSION, 0, 1),
    FeatureRange(SHARE_VERSION, 0, 1),
    FeatureRange(STREAMS_VERSION, 0, 1),
    FeatureRange(TRANSACTION_VERSION, 0, 2),
)
"""What this release supports; Kafka 4.3 has these in the same ranges."""

DEFAULT_LEVELS: Final[Mapping[str, int]] = MappingProxyType(
    {GROUP_VERSION: 1, SHARE_VERSION: 1, STREAMS_VERSION: 1, TRANSACTION_VERSION: 2}
)
"""What holds in a cluster where nothing was ever changed, as in one that Kafka 4.3 formats."""

DEFAULTS_EPOCH: Final = 0
"""Of the defaults; clients go by levels from 0 on."""

Listener = Callable[[str, int], None]
"""Called with the name of a feature and its new finalized level."""


class Incompatible(NamedTuple):
    """A feature that the cluster has finalized at a level that this broker does not have."""

    name: str
    level: int

    def __str__(self) -> str:
        supported = next((each for each in SUPPORTED if each.name == self.name), None)
        can = "not at all" if supported is None else f"up to level {supported.max_version}"
        return f"{self.name} is finalized at level {self.level}, supported here {can}"


class Features:
    """The cluster's finalized features, as this broker knows them.

    Attributes:
        epoch: grows with each change of what is finalized; `EPOCH_UNKNOWN` where that is not known.
        levels: finalized level by feature, without those at 0.
    """

    def __init__(self) -> None:
        self.epoch: int = EPOCH_UNKNOWN
        self.levels: Mapping[str, int] = {}
        self._listeners: list[Listener] = []

    def finalized(self, name: str) -> int:
        """The finalized level of a feature; 0 where it is not in use."""
        return self.levels.get(name, 0)

    def on_change(self, listener: Listener) -> None:
        """Have `listener` called after each change of a finalized level."""
        self._listeners.append(listener)

    def take_up(self, levels: Mapping[str, int], epoch: int) -> None:
        """Go by these levels from now on, and tell the listeners what changed.

        Args:
            levels: finalized level by feature.
            epoch: grows with each change.
        """
        former, self.levels, self.epoch = self.levels, dict(levels), epoch
        for name in sorted({*former, *levels}):
            if former.get(name, 0) != levels.get(name, 0):
                logger.info("%s is finalized at level %d", name, levels.get(name, 0))
                for listener in list(self._listeners):
                    listener(name, levels.get(name, 0))


def incompatible(levels: Mapping[str, int]) -> list[Incompatible]:
    """Which of these levels this broker does not support (Kafka's BrokerFeatures)."""
    ranges = {each.name: each for each in SUPPORTED}
    return [
        Incompatible(name, level)
        for name, level in sorted(levels.items())
        if name not in ranges or not ranges[name].holds(level)
    ]
