"""ConsumerGroupHeartbeat requests and their answers, free of wire messages and versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import NamedTuple

from ....common.errors import ErrorCode
from ..records import EncodedValue
from .member import NO_TIMEOUT, OwnedPartitions


def everything_allowed(_topic: str) -> bool:
    """Every client may know of every topic."""
    return True


class HeartbeatRequest(NamedTuple):
    """A heartbeat request; None is "as in the last one".

    Attributes:
        member_epoch: 0 to join, -1 to leave, -2 for a static member to leave for a while.
        owned: the partitions that the member owns, by topic id.
        api_version: from 1 on the client makes its member id itself.
        is_topic_allowed: which topics the client may know of; regular expressions match no
            others.
        encoded: what it may lead to in the log, encoded before.
    """

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = NO_TIMEOUT
    subscribed_topic_names: frozenset[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    owned: Mapping[bytes, Set[int]] | None = None
    client_id: str = ""
    client_host: str = ""
    api_version: int = 1
    is_topic_allowed: Callable[[str], bool] = everything_allowed
    encoded: Sequence[EncodedValue] = ()

    @property
    def is_full(self) -> bool:
        """Whether all fields are set, as they are after an error."""
        return (
            self.rebalance_timeout_ms != NO_TIMEOUT
            and (self.subscribed_topic_names is not None or self.subscribed_topic_regex is not None)
            and self.owned is not None
        )


class HeartbeatAnswer(NamedTuple):
    """The answer to a heartbeat.

    Attributes:
        assignment: what the member may own from now on; None where that has not changed.
    """

    error: ErrorCode
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: OwnedPartitions | None = None
