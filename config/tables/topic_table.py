"""Every topic setting of Kafka 4.3.1, and the broker settings that give their defaults.

The facts are held to Kafka's own tables by `tests/config/test_config_tables.py`.
"""

from __future__ import annotations

from ...common.sentinels import INT64_MAX
from ..definition import Definition, OneOf, Range, RangeOr, SomeOf, ThrottledReplicas
from .broker_table import BOOLEAN, COMPRESSION_TYPES, DOUBLE, INT, LIST, LONG, MEDIUM, STRING

TOPIC_DEFINITIONS: dict[str, Definition] = {
    definition.name: definition
    for definition in (
        Definition("cleanup.policy", LIST, ("delete",), MEDIUM, SomeOf(("compact", "delete"))),
        Definition("compression.gzip.level", INT, -1, MEDIUM, RangeOr(-1, 1, 9)),
        Definition("compression.lz4.level", INT, 9, MEDIUM, Range(1, 17)),
        Definition("compression.type", STRING, "producer", MEDIUM, COMPRESSION_TYPES),
        Definition("compression.zstd.level", INT, 3, MEDIUM, Range(-131_072, 22)),
        Definition("delete.retention.ms", LONG, 86_400_000, MEDIUM, Range(0)),
        Definition("file.delete.delay.ms", LONG, 60000, MEDIUM, Range(0)),
        Definition("flush.messages", LONG, INT64_MAX, MEDIUM, Range(1)),
        Definition("flush.ms", LONG, INT64_MAX, MEDIUM, Range(0)),
        Definition(
            "follower.replication.throttled.replicas", LIST, (), MEDIUM, ThrottledReplicas()
        ),
        Definition("index.interval.bytes", INT, 4096, MEDIUM, Range(0)),
        Definition("internal.segment.bytes", INT, None, MEDIUM, internal=True),
        Definition("leader.replication.throttled.replicas", LIST, (), MEDIUM, ThrottledReplicas()),
        Definition("local.retention.bytes", LONG, -2, MEDIUM, Range(-2)),
        Definition("local.retention.ms", LONG, -2, MEDIUM, Range(-2)),
        Definition("max.compaction.lag.ms", LONG, INT64_MAX, MEDIUM, Range(1)),
        Definition("max.message.bytes", INT, 1_048_588, MEDIUM, Range(0)),
        Definition("message.timestamp.after.max.ms", LONG, 3_600_000, MEDIUM, Range(0)),
        Definition("message.timestamp.before.max.ms", LONG, INT64_MAX, MEDIUM, Range(0)),
        Definition(
            "message.timestamp.type",
            STRING,
            "CreateTime",
            MEDIUM,
            OneOf(("CreateTime", "LogAppendTime")),
        ),
        Definition("min.cleanable.dirty.ratio", DOUBLE, 0.5, MEDIUM, Range(0, 1)),
        Definition("min.compaction.lag.ms", LONG, 0, MEDIUM, Range(0)),
        Definition("min.insync.replicas", INT, 1, MEDIUM, Range(1)),
        Definition("preallocate", BOOLEAN, False, MEDIUM),
        Definition("remote.log.copy.disable", BOOLEAN, False, MEDIUM),
        Definition("remote.log.delete.on.disable", BOOLEAN, False, MEDIUM),
        Definition("remote.storage.enable", BOOLEAN, False, MEDIUM),
        Definition("retention.bytes", LONG, -1, MEDIUM),
        Definition("retention.ms", LONG, 604_800_000, MEDIUM, Range(-1)),
        Definition("segment.bytes", INT, 1_073_741_824, MEDIUM, Range(1_048_576)),
        Definition("segment.index.bytes", INT, 10_485_760, MEDIUM, Range(4)),
        Definition("segment.jitter.ms", LONG, 0, MEDIUM, Range(0)),
        Definition("segment.ms", LONG, 604_800_000, MEDIUM, Range(1)),
        Definition("unclean.leader.election.enable", BOOLEAN, False, MEDIUM),
    )
}

BROKER_SYNONYMS: dict[str, str] = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type",
    "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "preallocate": "log.preallocate",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
"""The broker setting that is a topic setting's default, by the topic setting's name.

Settings with coarser companions (`log.retention.minutes`) are resolved before they get here.
"""
