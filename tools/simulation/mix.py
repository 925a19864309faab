"""What a run is made of: how many brokers and clients, how much goes wrong, and how fast."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple


class Mix(NamedTuple):
    """The settings of a run.

    Attributes:
        name: by which the command line knows it.
        brokers: how many; None: the seed decides, three to seven.
        producers, readers, admins, members, classic, transactional, acl_admins, feature_admins,
            streams: how many of these clients; members are those of two consumer groups, classic
            and streams ones those of two groups of their kinds.
        fault_ms: about so long from one fault to the next; 0: there are none.
        rest_ms: after about so long everything heals, and is looked at.
        pace: how slow clients are.
        admin_pace: how much slower administrators are.
        session_ms: the time-out of brokers' sessions with the metadata store.
        topics: how many there are from the beginning.
        overrides: of the brokers' settings.
        faults: how often each happens, in relation to the others, by its name; all as usual if
            none is named.
    """

    name: str
    brokers: int | None = None
    producers: int = 2
    readers: int = 1
    admins: int = 1
    members: int = 0
    classic: int = 0
    transactional: int = 0
    acl_admins: int = 0
    feature_admins: int = 0
    streams: int = 0
    fault_ms: int = 1_500
    rest_ms: int = 60_000
    pace: float = 1.0
    admin_pace: float = 1.0
    session_ms: int = 6_000
    topics: int = 2
    overrides: Mapping[str, Any] = {}
    faults: Mapping[str, int] = {}

    def broker_count(self, rng: Random) -> int:
        """How many brokers a run has."""
        return self.brokers or rng.choice((3, 3, 3, 3, 4, 4, 5, 6, 7))


LIVELY: Mapping[str, Any] = {
    "replica.lag.time.max.ms": 2_000,
    "replica.fetch.wait.max.ms": 500,
    "replica.high.watermark.checkpoint.interval.ms": 1_000,
    "log.flush.offset.checkpoint.interval.ms": 3_000,
    "log.initial.task.delay.ms": 500,
    "log.retention.check.interval.ms": 5_000,
    "replica.socket.timeout.ms": 3_000,
    "controller.socket.timeout.ms": 3_000,
    "leader.imbalance.check.interval.seconds": 10,
    "file.delete.delay.ms": 1_000,
    "log.cleaner.enable": "false",
    "max.connections.per.ip": 1_000,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 3_000,
}
"""What makes brokers notice soon: a run of a minute is to have many elections."""

FULL = Mix("full", members=3, transactional=2, pace=2.0, overrides=LIVELY)
GROUPS = FULL._replace(name="groups", classic=5, transactional=0)
"""Many members, of classic groups, too."""
STREAMS = GROUPS._replace(name="streams", members=0, classic=0, streams=6, admin_pace=5.0, topics=6)
"""Many members of streams groups; their tasks need topics that stay for a while."""
LOGS = Mix("logs", brokers=3, overrides=LIVELY)
"""Without coordinators: what is wrong with replicas and the controller shows sooner."""
ACLS = LOGS._replace(
    name="acls",
    producers=1,
    acl_admins=2,
    overrides={
        **LIVELY,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    },
)
"""ACLs are added and removed; nobody is refused anything by them."""
FEATURES = LOGS._replace(name="features", producers=1, feature_admins=2)
"""The levels of features go up and down."""
RESTARTS = LOGS._replace(
    name="restarts", brokers=5, fault_ms=2_000, faults={"restart": 1, "slow-store": 3}
)
"""The controller often sees that a broker is gone only when it has come back."""
IDLE = Mix(
    "idle",
    brokers=3,
    producers=1,
    admins=0,
    fault_ms=0,
    rest_ms=3_600_000,
    pace=100.0,
    topics=1,
    overrides={"log.cleaner.enable": "false", "replica.fetch.wait.max.ms": 5_000},
)
CALM = Mix(
    "calm",
    brokers=3,
    members=2,
    transactional=1,
    fault_ms=300_000,
    rest_ms=1_800_000,
    pace=50.0,
    admin_pace=20.0,
    session_ms=18_000,
    overrides={
        "log.cleaner.enable": "false",
        "log.roll.ms": 300_000,
        "log.retention.ms": 900_000,
    },
)
"""As clusters live: Kafka's own timings but for retention, and a fault every five minutes."""
RETENTION = LOGS._replace(
    name="retention",
    overrides={
        **LIVELY,
        "log.roll.ms": 1_000,
        "log.retention.ms": 2_000,
        "log.retention.check.interval.ms": 1_000,
    },
)
"""Records are deleted while everything goes wrong."""
MIXES: Mapping[str, Mix] = {
    mix.name: mix
    for mix in (FULL, GROUPS, STREAMS, LOGS, ACLS, FEATURES, RESTARTS, RETENTION, CALM, IDLE)
}
