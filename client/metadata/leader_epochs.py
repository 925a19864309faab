"""The newest leader epoch seen of each partition, and what an answer with another one means.

Brokers learn of a new leader one after the other, so an answer may be older than what the
client knows already. Leader epochs decide which is newer (KIP-320).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .cluster import PartitionInfo


class Accepted(NamedTuple):
    """What to keep of a partition after an answer.

    Attributes:
        partition: as answered, or as it was known; None if neither is to be had.
        is_progress: whether the answer said anything new.
    """

    partition: PartitionInfo | None
    is_progress: bool


class LeaderEpochs:
    """Epochs by topic and partition."""

    def __init__(self) -> None:
        self._epochs: dict[tuple[str, int], int] = {}
        self._topic_ids: dict[str, bytes] = {}
        """Whose epochs these are. Unlike in Kafka they outlast an error in the place of the
        topic, and beginning anew with the bootstrap addresses: the same topic comes back with
        the same id, and then an older epoch is no more to be believed than before."""

    def get(self, topic: str, index: int) -> int | None:
        """The newest epoch seen, or None."""
        return self._epochs.get((topic, index))

    def is_other_topic(self, topic: str, topic_id: bytes) -> bool:
        """Whether an answer is about another topic of that name than the epochs are; from now
        on they are about this one."""
        if not any(topic_id):
            return False
        known = self._topic_ids.get(topic)
        self._topic_ids[topic] = topic_id
        return known != topic_id

    def accept(
        self,
        answered: PartitionInfo,
        known: PartitionInfo | None,
        *,
        is_reliable: bool,
        is_other_topic: bool,
    ) -> Accepted:
        """Choose between a partition as answered and as it is known.

        An epoch older than the one known is not believed, unless the topic has another id:
        then it was deleted and created anew, and its epochs began again.

        Args:
            answered: the partition in a metadata answer.
            known: what the snapshot has of it.
            is_reliable: whether the answer's epochs can be ordered (Metadata v9 and newer).
            is_other_topic: what the method of that name said of the answer.
        """
        key = (answered.topic, answered.partition)
        epoch = answered.leader_epoch
        if not is_reliable or epoch is None:
            self._epochs.pop(key, None)
            return Accepted(answered._replace(leader_epoch=None), True)
        current = self._epochs.get(key)
        if current is None or is_other_topic or epoch > current:
            self._epochs[key] = epoch
            return Accepted(answered, True)
        return Accepted(answered if epoch == current else known, False)

    def note_newer(self, topic: str, index: int, epoch: int) -> bool:
        """Note an epoch that some other answer than Metadata's named.

        Returns:
            Whether it is newer than the one known: then the metadata is stale. Of partitions
            without a known epoch nothing is noted.
        """
        current = self._epochs.get((topic, index))
        if current is None or epoch <= current:
            return False
        self._epochs[topic, index] = epoch
        return True

    def forget_unless(self, keep: Callable[[str], bool]) -> None:
        """Drop the epochs of topics that are kept no longer."""
        topics = {topic for topic, _ in self._epochs} | self._topic_ids.keys()
        gone = {topic for topic in topics if not keep(topic)}
        if gone:
            kept = {key: epoch for key, epoch in self._epochs.items() if key[0] not in gone}
            self._epochs = kept
            for topic in gone:
                self._topic_ids.pop(topic, None)
