"""The one list of what this broker serves; a handler's module is imported at its first request.

Routing, ApiVersions and `docs/apis.md` are derived from it. Three ranges are kept apart:
what a schema can say (the message's own), what is served (`versions`), and what
ApiVersions advertises (`advertised`, where it differs). An API's module beside this one and
the function in it have the API's name: FIND_COORDINATOR is handled by
`find_coordinator.handle_find_coordinator`.

A handler is called with a `HandlerContext` and the `Request` of its API's message, and returns
an `Outcome` of its API's response: `Answer`, `PARKED` when it kept the request to answer it later,
`AT_FLUSH` when this pass's flush will answer it, or a `Task`, which `in_task` makes of an async
function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias

from ...protocol.api_keys import ApiKey
from ..request.outcomes import Outcome

if TYPE_CHECKING:
    from ...protocol.codec.message import Message

Handler: TypeAlias = "Callable[..., Outcome[Message]]"
"""Any API's. What it takes is its own API's, which no type can say here, where it is found by its
name: `tests/broker/handlers/test_registry.py` compares each with its API."""

NOT_ADVERTISED: Final = "none"
"""What brokers ask of each other, and Kafka 4 does not tell clients of."""


class Registration:
    """One API as served here.

    Args:
        api_key: which one.
        versions: those that are served, as "0-4".
        advertised: what ApiVersions says where that is not what is served, or `NOT_ADVERTISED`.

    Attributes:
        versions: those that are served.
        advertised: those that ApiVersions names; None if it does not name the API.
    """

    __slots__ = ("advertised", "api_key", "versions")

    def __init__(self, api_key: ApiKey, versions: str, advertised: str | None) -> None:
        self.api_key = api_key
        self.versions = parse_versions(versions)
        self.advertised: range | None = self.versions
        if advertised is not None:
            self.advertised = None if advertised == NOT_ADVERTISED else parse_versions(advertised)

    def load(self) -> Handler:
        """The handler; its module is imported if no request has needed it before, and so is the
        coordinator that the request is for."""
        coordinator = COORDINATORS.get(self.api_key)
        if coordinator is not None:
            import_module(f"...{coordinator}", __package__)
        name = self.api_key.name.lower()
        module = import_module(f".{name}", __package__)
        handler: Handler = getattr(module, f"handle_{name}")
        return handler


def parse_versions(text: str) -> range:
    """ "0-4" or "3" as a range of versions."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _registered(*rows: tuple[ApiKey, str] | tuple[ApiKey, str, str]) -> Mapping[int, Registration]:
    return {row[0]: Registration(row[0], row[1], row[2] if len(row) > 2 else None) for row in rows}


REGISTRATIONS: Final = _registered(
    (ApiKey.PRODUCE, "3-13", "0-13"),
    (ApiKey.FETCH, "4-18"),
    (ApiKey.LIST_OFFSETS, "1-11"),
    (ApiKey.METADATA, "0-13"),
    (ApiKey.LEADER_AND_ISR, "0-7", NOT_ADVERTISED),
    (ApiKey.STOP_REPLICA, "0-4", NOT_ADVERTISED),
    (ApiKey.UPDATE_METADATA, "0-8", NOT_ADVERTISED),
    (ApiKey.CONTROLLED_SHUTDOWN, "0-3", NOT_ADVERTISED),
    (ApiKey.OFFSET_COMMIT, "2-10"),
    (ApiKey.OFFSET_FETCH, "1-10"),
    (ApiKey.FIND_COORDINATOR, "0-6"),
    (ApiKey.JOIN_GROUP, "0-9"),
    (ApiKey.HEARTBEAT, "0-4"),
    (ApiKey.LEAVE_GROUP, "0-5"),
    (ApiKey.SYNC_GROUP, "0-5"),
    (ApiKey.DESCRIBE_GROUPS, "0-6"),
    (ApiKey.LIST_GROUPS, "0-5"),
    (ApiKey.SASL_HANDSHAKE, "0-1"),
    (ApiKey.API_VERSIONS, "0-4"),
    (ApiKey.CREATE_TOPICS, "2-7"),
    (ApiKey.DELETE_TOPICS, "1-6"),
    (ApiKey.DELETE_RECORDS, "0-2"),
    (ApiKey.INIT_PRODUCER_ID, "0-5"),
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, "2-4"),
    (ApiKey.ADD_PARTITIONS_TO_TXN, "0-5"),
    (ApiKey.ADD_OFFSETS_TO_TXN, "0-4"),
    (ApiKey.END_TXN, "0-5"),
    (ApiKey.WRITE_TXN_MARKERS, "1-2"),
    (ApiKey.TXN_OFFSET_COMMIT, "0-5"),
    (ApiKey.DESCRIBE_ACLS, "1-3"),
    (ApiKey.CREATE_ACLS, "1-3"),
    (ApiKey.DELETE_ACLS, "1-3"),
    (ApiKey.DESCRIBE_CONFIGS, "1-4"),
    (ApiKey.ALTER_CONFIGS, "0-2"),
    (ApiKey.ALTER_REPLICA_LOG_DIRS, "1-2"),
    (ApiKey.DESCRIBE_LOG_DIRS, "1-5"),
    (ApiKey.SASL_AUTHENTICATE, "0-2"),
    (ApiKey.CREATE_PARTITIONS, "0-3"),
    (ApiKey.CREATE_DELEGATION_TOKEN, "1-3"),
    (ApiKey.RENEW_DELEGATION_TOKEN, "1-2"),
    (ApiKey.EXPIRE_DELEGATION_TOKEN, "1-2"),
    (ApiKey.DESCRIBE_DELEGATION_TOKEN, "1-3"),
    (ApiKey.DELETE_GROUPS, "0-2"),
    (ApiKey.ELECT_LEADERS, "0-2"),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "0-1"),
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, "0-1"),
    (ApiKey.LIST_PARTITION_REASSIGNMENTS, "0"),
    (ApiKey.OFFSET_DELETE, "0"),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, "0-1"),
    (ApiKey.ALTER_CLIENT_QUOTAS, "0-1"),
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "0"),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "0"),
    (ApiKey.ALTER_PARTITION, "0-3", NOT_ADVERTISED),
    (ApiKey.UPDATE_FEATURES, "0-2"),
    (ApiKey.DESCRIBE_CLUSTER, "0-2"),
    (ApiKey.DESCRIBE_PRODUCERS, "0"),
    (ApiKey.DESCRIBE_TRANSACTIONS, "0"),
    (ApiKey.LIST_TRANSACTIONS, "0-2"),
    (ApiKey.ALLOCATE_PRODUCER_IDS, "0", NOT_ADVERTISED),
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, "0-1"),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, "0-1"),
    (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, "0"),
    (ApiKey.PUSH_TELEMETRY, "0"),
    (ApiKey.LIST_CONFIG_RESOURCES, "0-1"),
    (ApiKey.DESCRIBE_TOPIC_PARTITIONS, "0"),
    (ApiKey.SHARE_GROUP_HEARTBEAT, "1"),
    (ApiKey.SHARE_GROUP_DESCRIBE, "1"),
    (ApiKey.SHARE_FETCH, "1-2"),
    (ApiKey.SHARE_ACKNOWLEDGE, "1-2"),
    (ApiKey.INITIALIZE_SHARE_GROUP_STATE, "0"),
    (ApiKey.READ_SHARE_GROUP_STATE, "0"),
    (ApiKey.WRITE_SHARE_GROUP_STATE, "0-1"),
    (ApiKey.DELETE_SHARE_GROUP_STATE, "0"),
    (ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, "0-1"),
    (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, "0-1"),
    (ApiKey.ALTER_SHARE_GROUP_OFFSETS, "0"),
    (ApiKey.DELETE_SHARE_GROUP_OFFSETS, "0"),
    (ApiKey.STREAMS_GROUP_HEARTBEAT, "0"),
    (ApiKey.STREAMS_GROUP_DESCRIBE, "0"),
)


_GROUP: Final = "coordinator.group.factory"
_TRANSACTION: Final = "coordinator.transaction.factory"
_SHARE: Final = "broker.share.share_partition_manager"
_SHARE_STATE: Final = "coordinator.share.factory"

COORDINATORS: Final[Mapping[ApiKey, str]] = {
    ApiKey.FIND_COORDINATOR: _GROUP,  # with the topic that it has made, the leader becomes one
    ApiKey.OFFSET_COMMIT: _GROUP,
    ApiKey.OFFSET_FETCH: _GROUP,
    ApiKey.JOIN_GROUP: _GROUP,
    ApiKey.HEARTBEAT: _GROUP,
    ApiKey.LEAVE_GROUP: _GROUP,
    ApiKey.SYNC_GROUP: _GROUP,
    ApiKey.DESCRIBE_GROUPS: _GROUP,
    ApiKey.LIST_GROUPS: _GROUP,
    ApiKey.DELETE_GROUPS: _GROUP,
    ApiKey.OFFSET_DELETE: _GROUP,
    ApiKey.TXN_OFFSET_COMMIT: _GROUP,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _GROUP,
    ApiKey.CONSUMER_GROUP_DESCRIBE: _GROUP,
    ApiKey.STREAMS_GROUP_HEARTBEAT: _GROUP,
    ApiKey.STREAMS_GROUP_DESCRIBE: _GROUP,
    ApiKey.SHARE_GROUP_HEARTBEAT: _GROUP,
    ApiKey.SHARE_GROUP_DESCRIBE: _GROUP,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _GROUP,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _GROUP,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _GROUP,
    ApiKey.INIT_PRODUCER_ID: _TRANSACTION,
    ApiKey.ADD_PARTITIONS_TO_TXN: _TRANSACTION,
    ApiKey.ADD_OFFSETS_TO_TXN: _TRANSACTION,
    ApiKey.END_TXN: _TRANSACTION,
    ApiKey.DESCRIBE_TRANSACTIONS: _TRANSACTION,
    ApiKey.LIST_TRANSACTIONS: _TRANSACTION,
    ApiKey.SHARE_FETCH: _SHARE,
    ApiKey.SHARE_ACKNOWLEDGE: _SHARE,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.READ_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _SHARE_STATE,
}
"""What a request comes to besides its handler, imported with it: `BrokerCoordinators` would do it
at the first use, while everybody else waits."""
