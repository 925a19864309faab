"""Every setting of a single group in Kafka 4.3.1, and of a client metrics subscription.

Neither can be set in a file: a group or a subscription gets them from a client, through
IncrementalAlterConfigs. What a group does not set follows the broker (`GROUP_SYNONYMS`). The
facts are those of Kafka's `GroupConfig` and `ClientMetricsConfigs`.
"""

from __future__ import annotations

from ..definition import Definition, OffsetReset, OneOf, Range
from .broker_table import BOOLEAN, INT, LIST, MEDIUM, STRING

GROUP_DEFINITIONS: dict[str, Definition] = {
    definition.name: definition
    for definition in (
        Definition("consumer.assignment.interval.ms", INT, 1000, MEDIUM, Range(0)),
        Definition("consumer.heartbeat.interval.ms", INT, 5000, MEDIUM, Range(1)),
        Definition("consumer.session.timeout.ms", INT, 45000, MEDIUM, Range(1)),
        Definition("share.assignment.interval.ms", INT, 1000, MEDIUM, Range(0)),
        Definition("share.auto.offset.reset", STRING, "latest", MEDIUM, OffsetReset()),
        Definition("share.delivery.count.limit", INT, 5, MEDIUM, Range(2)),
        Definition("share.heartbeat.interval.ms", INT, 5000, MEDIUM, Range(1)),
        Definition(
            "share.isolation.level",
            STRING,
            "read_uncommitted",
            MEDIUM,
            OneOf(("read_committed", "read_uncommitted")),
        ),
        Definition("share.partition.max.record.locks", INT, 2000, MEDIUM, Range(100)),
        Definition("share.record.lock.duration.ms", INT, 30000, MEDIUM, Range(1000)),
        Definition("share.renew.acknowledge.enable", BOOLEAN, True, MEDIUM),
        Definition("share.session.timeout.ms", INT, 45000, MEDIUM, Range(1)),
        Definition("streams.assignment.interval.ms", INT, 1000, MEDIUM, Range(0)),
        Definition("streams.heartbeat.interval.ms", INT, 5000, MEDIUM, Range(1)),
        Definition("streams.initial.rebalance.delay.ms", INT, 3000, MEDIUM, Range(0)),
        Definition("streams.num.standby.replicas", INT, 0, MEDIUM, Range(0)),
        Definition("streams.session.timeout.ms", INT, 45000, MEDIUM, Range(1)),
    )
}

WITHOUT_BROKER_SETTING = frozenset(
    {"share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable"}
)

GROUP_SYNONYMS: dict[str, str] = {
    name: f"group.{name}" for name in GROUP_DEFINITIONS if name not in WITHOUT_BROKER_SETTING
}
"""The broker setting that is a group setting's default, by the group setting's name."""


def _around(name: str) -> tuple[str, str]:
    """The settings of a broker that bound a group's: `group.consumer.min.session.timeout.ms`."""
    kind, _, rest = name.partition(".")
    return f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}"


GROUP_BOUNDS: dict[str, tuple[str | None, str]] = {
    **{
        name: _around(name)
        for name in (
            "consumer.assignment.interval.ms",
            "consumer.heartbeat.interval.ms",
            "consumer.session.timeout.ms",
            "share.assignment.interval.ms",
            "share.delivery.count.limit",
            "share.heartbeat.interval.ms",
            "share.partition.max.record.locks",
            "share.record.lock.duration.ms",
            "share.session.timeout.ms",
            "streams.assignment.interval.ms",
            "streams.heartbeat.interval.ms",
            "streams.session.timeout.ms",
        )
    },
    "streams.num.standby.replicas": (None, "group.streams.max.standby.replicas"),
}
"""The broker's settings between which a group's may be: the least, if any, and the most."""

CLIENT_METRICS_DEFINITIONS: dict[str, Definition] = {
    definition.name: definition
    for definition in (
        Definition("interval.ms", INT, 300_000, MEDIUM, Range(100, 3_600_000)),
        Definition("match", LIST, (), MEDIUM),
        Definition("metrics", LIST, (), MEDIUM),
    )
}
"""What a client metrics subscription says (KIP-714)."""

CLIENT_MATCHES = frozenset(
    {
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
"""What of a client a subscription's `match` can look at."""
