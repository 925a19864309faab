"""Appending what a Produce brings: at once, or, of a long request, some partitions at a time."""

from __future__ import annotations

from collections.abc import Mapping

from ...common.topic_partition import TopicPartition
from ...protocol import messages
from ...replication.append import AppendCallback, PartitionResponse
from ...runtime.steps import Steps, in_batches
from ...storage.log.append_origin import AppendOrigin
from ..interbroker.transaction_verification import Guards
from .context import HandlerContext
from .requests import Request

ADMIN_CLIENT_ID = "__admin_client"
"""The one client that may write to internal topics, as Kafka's tools do."""
PARTITIONS_PER_PIECE = 4
"""So many partitions of a long request are one item of its steps."""

Entries = Mapping[TopicPartition, memoryview]
"""A request's batches, by partition."""
NO_GUARDS: Guards = {}


def internal_topics_allowed(request: Request[messages.ProduceRequest]) -> bool:
    """Whether a request may write to internal topics."""
    return request.client_id == ADMIN_CLIENT_ID


def append_entries(
    context: HandlerContext,
    request: Request[messages.ProduceRequest],
    entries: Entries,
    on_complete: AppendCallback,
    guards: Guards = NO_GUARDS,
) -> None:
    """Append batches.

    Args:
        context: the broker's.
        request: what brings them.
        entries: the batches, by partition.
        on_complete: gets every partition's outcome, in or after a flush.
        guards: of partitions whose transaction was verified.
    """
    context.replica_manager.append_records(
        timeout_ms=request.body.timeout_ms,
        required_acks=request.body.acks,
        internal_topics_allowed=internal_topics_allowed(request),
        origin=AppendOrigin.CLIENT,
        entries=entries,
        on_complete=on_complete,
        guards=guards,
    )


def append_entries_in_steps(
    context: HandlerContext,
    request: Request[messages.ProduceRequest],
    entries: Entries,
    on_complete: AppendCallback,
    guards: Guards = NO_GUARDS,
) -> Steps[None]:
    """The same for many partitions, some at a time; all outcomes are given at once, in the end."""
    results: dict[TopicPartition, PartitionResponse] = {}
    waiting = 1  # this work, which may not be over before the last append is begun

    def appended(some: dict[TopicPartition, PartitionResponse]) -> None:
        nonlocal waiting
        results.update(some)
        waiting -= 1
        if not waiting:
            on_complete(results)

    for batch in in_batches(list(entries), PARTITIONS_PER_PIECE):
        waiting += 1
        append_entries(context, request, {each: entries[each] for each in batch}, appended, guards)
        yield
    appended({})
