"""Runs `odradek` with one part of replication switched off: `broken_broker.py FAULT serve ...`.

A checker that finds nothing has to be shown that it finds what such brokers lose.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from odradek.cli.main import main
from odradek.protocol.errors import ErrorCode
from odradek.replication.fetcher import ReplicaFetcher
from odradek.replication.fetcher_asking import AskingFetcher
from odradek.replication.fetcher_partition import PartitionFetchState
from odradek.replication.fetcher_requests import UNDEFINED_EPOCH
from odradek.replication.partition import Partition
from odradek.storage.topic_partition import TopicPartition


def follow_without_truncation() -> None:
    """A follower never asks where its log and its leader's part, and so cuts nothing off.

    It waits for a leader whose log is shorter than its own to grow.
    """

    def name_no_epoch(self: AskingFetcher, state: PartitionFetchState) -> int:
        return UNDEFINED_EPOCH

    def wait_for_leader(
        self: ReplicaFetcher, tp: TopicPartition, state: PartitionFetchState
    ) -> None:
        return

    _replace(AskingFetcher, "_named_epoch", name_no_epoch)
    _replace(ReplicaFetcher, "_begin_reset", wait_for_leader)


def acknowledge_at_once() -> None:
    """acks=all is answered as soon as the leader has the records, whoever else has them."""

    def is_enough(self: Partition, required_offset: int) -> tuple[bool, ErrorCode]:
        return True, ErrorCode.NONE if self.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER

    _replace(Partition, "has_replicated", is_enough)


def _replace(owner: type[Any], name: str, function: Callable[..., Any]) -> None:
    if not hasattr(owner, name):
        raise LookupError(f"{owner.__qualname__} has no {name} any more to be switched off")
    setattr(owner, name, function)


FAULTS = {
    "no-truncation": follow_without_truncation,
    "early-acknowledgements": acknowledge_at_once,
}

if __name__ == "__main__":
    FAULTS[sys.argv.pop(1)]()
    sys.exit(main())
