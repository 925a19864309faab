"""What the share coordinator takes from the broker's configuration."""

from __future__ import annotations

from typing import NamedTuple

from ...protocol.compression.codecs import Compression
from ..runtime import ConfigurationValues


class ShareCoordinatorSettings(NamedTuple):
    """The settings that it obeys; the defaults are Kafka's.

    Attributes:
        topic_partitions: how many `__share_group_state` is made with.
        updates_per_snapshot: so many updates of a state are written, then a snapshot.
        write_timeout_ms: how long a write may wait for replicas.
        prune_interval_ms: how often what snapshots have replaced is removed.
        cold_interval_ms: a share partition whose last snapshot is older gets another one, so that
            its records do not keep older ones from being removed.
    """

    topic_partitions: int = 50
    updates_per_snapshot: int = 500
    write_timeout_ms: int = 5_000
    prune_interval_ms: int = 300_000
    cold_interval_ms: int = 300_000
    load_slice_bytes: int = 64 * 1024
    compression: Compression = Compression.NONE

    @classmethod
    def from_config(cls, config: ConfigurationValues) -> ShareCoordinatorSettings:
        """Read the settings out of a broker's configuration.

        Raises:
            ValueError: there is no codec of the number given for the topic.
        """
        return cls(
            topic_partitions=config["share.coordinator.state.topic.num.partitions"],
            updates_per_snapshot=config["share.coordinator.snapshot.update.records.per.snapshot"],
            write_timeout_ms=config["share.coordinator.write.timeout.ms"],
            prune_interval_ms=config["share.coordinator.state.topic.prune.interval.ms"],
            cold_interval_ms=config["share.coordinator.cold.partition.snapshot.interval.ms"],
            load_slice_bytes=min(config["share.coordinator.load.buffer.size"], 64 * 1024),
            compression=Compression(config["share.coordinator.state.topic.compression.codec"]),
        )
