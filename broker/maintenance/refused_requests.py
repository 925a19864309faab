"""Errors that requests are answered, in the broker's log: one line for each API and error.

They are counted as the answers leave (Kafka's ErrorsPerSec); here the counts are compared with what
the log has of them, so that no request pays for its line, and a flood of them is a line a minute.
A Produce whose records a partition refused has a line already, with the reason, and gets no second.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable

from ...common.errors import ErrorCode
from ...protocol.api_keys import ApiKey
from ...replication.refused_writes import RefusedWrites
from ...runtime.clock import Clock
from ..request.route import Route

logger = logging.getLogger(__name__)

LOOK_MS = 10_000
INTERVAL_MS = 60_000
"""From one line of a kind to the next."""

SERIOUS = frozenset(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.SECURITY_DISABLED,
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        ErrorCode.ILLEGAL_SASL_STATE,
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    }
)
"""Warnings, since somebody has to do something. Clients meet the others in normal life, when
leaders change, groups rebalance and topics are made, and come through."""


class RefusedRequests:
    """Logs what requests were answered.

    Args:
        routes: every API and version that was requested, each with the errors in its answers.
        writes: what partitions refuse, each with a line of its own.
        clock: the time.
    """

    def __init__(
        self, routes: Callable[[], Iterable[Route]], writes: RefusedWrites, clock: Clock
    ) -> None:
        self._routes = routes
        self._writes = writes
        self._clock = clock
        self._logged: dict[tuple[str, ErrorCode], tuple[int, int]] = {}
        """By kind, the count when it was logged last, and when that was."""

    def look(self) -> None:
        """Log each kind of which there are more, unless it was logged within the minute."""
        now_ms = self._clock.monotonic_ms()
        counts: Counter[tuple[str, ErrorCode]] = Counter()
        for route in self._routes():
            for name, count in route.errors.by_name():
                counts[route.name, ErrorCode[name]] += count
        for kind, count in counts.items():
            api, error = kind
            logged, at_ms = self._logged.get(kind, (0, now_ms - INTERVAL_MS))
            if error is ErrorCode.NONE or count == logged or now_ms - at_ms < INTERVAL_MS:
                continue
            self._logged[kind] = (count, now_ms)
            if api == ApiKey.PRODUCE.name and self._writes.is_explained(error):
                continue
            level = logging.WARNING if error in SERIOUS else logging.INFO
            logger.log(
                level,
                "%s was answered %s %d times in the last %d s",
                api,
                error.name,
                count - logged,
                (now_ms - at_ms) // 1000,
            )
