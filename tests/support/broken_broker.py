"""Runs `odradek` with one part of it switched off: `broken_broker.py FAULT serve ...`.

A checker that finds nothing has to be shown that it finds what such brokers lose.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from odradek.broker.interbroker.marker_channels import EndedTransaction, MarkerChannels
from odradek.cli.main import main
from odradek.common.errors import ErrorCode
from odradek.common.sentinels import NO_EPOCH
from odradek.common.topic_partition import TopicPartition
from odradek.protocol.codec.message import Message
from odradek.protocol.messages import FetchRequest
from odradek.replication.fetcher.leader_endpoint import LeaderEndpoint
from odradek.replication.fetcher.plans import RequestPlan
from odradek.replication.partition.partition import Partition
from odradek.storage import Log, LogRead
from odradek.storage.index.transaction_index import AbortedTxn


def follow_without_truncation() -> None:
    """A follower never asks where its log and its leader's part, and cuts nothing off.

    Where the leader's log is shorter than its own, it waits for that to grow.
    """
    encode = LeaderEndpoint.encode

    def name_no_epochs(self: LeaderEndpoint, plan: RequestPlan) -> tuple[Message, int]:
        message, version = encode(self, plan)
        if isinstance(message, FetchRequest):
            for topic in message.topics:
                for partition in topic.partitions:
                    partition.last_fetched_epoch = NO_EPOCH
        return message, version

    def keep_all(self: Partition, offset: int) -> None:
        return

    _replace(LeaderEndpoint, "encode", name_no_epochs)
    _replace(Partition, "truncate_to", keep_all)


def acknowledge_at_once() -> None:
    """acks=all is answered as soon as the leader has the records, whoever else has them."""

    def is_enough(self: Partition, required_offset: int) -> tuple[bool, ErrorCode]:
        return True, ErrorCode.NONE if self.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER

    _replace(Partition, "has_replicated", is_enough)


def leak_aborted_records() -> None:
    """A read_committed reader is never told which transactions were aborted."""

    def none(self: Log, read: LogRead) -> list[AbortedTxn]:
        return []

    _replace(Log, "aborted_transactions_in", none)


def keep_markers() -> None:
    """A transaction coordinator that decides, and tells no partition."""

    def none(self: MarkerChannels, transaction: EndedTransaction, partitions: object) -> None:
        return

    _replace(MarkerChannels, "_route", none)


def keep_all_markers_but_one() -> None:
    """A transaction coordinator that tells the first partition of a transaction alone."""
    route = MarkerChannels._route

    def first(
        self: MarkerChannels, transaction: EndedTransaction, partitions: Iterable[TopicPartition]
    ) -> None:
        route(self, transaction, sorted(partitions)[:1])

    _replace(MarkerChannels, "_route", first)


def complete_nothing() -> None:
    """A transaction coordinator that never writes down that all partitions were told."""

    def nothing(self: MarkerChannels, transaction: EndedTransaction, error: ErrorCode) -> None:
        return

    _replace(MarkerChannels, "_finish", nothing)


def _replace(owner: type[Any], name: str, function: Callable[..., Any]) -> None:
    if not hasattr(owner, name):
        raise LookupError(f"{owner.__qualname__} has no {name} any more to be switched off")
    setattr(owner, name, function)


FAULTS = {
    "no-truncation": follow_without_truncation,
    "early-acknowledgements": acknowledge_at_once,
    "leaking-aborts": leak_aborted_records,
    "no-markers": keep_markers,
    "one-marker": keep_all_markers_but_one,
    "no-completion": complete_nothing,
}

if __name__ == "__main__":
    FAULTS[sys.argv.pop(1)]()
    sys.exit(main())
