"""Transactions as `odradek transactions` shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..common.show import show_table
from ..common.times import format_duration, format_time
from ..topics.partition_names import format_partitions

if TYPE_CHECKING:
    from ...client.admin.transaction_descriptions import ProducerOfPartition, TransactionDescription

STATE_MEANINGS = {
    "Empty": "its producer has begun, and no transaction is open",
    "Ongoing": "a transaction is open",
    "PrepareCommit": "committed; markers are being written",
    "PrepareAbort": "aborted; markers are being written",
    "CompleteCommit": "the last transaction was committed, none is open",
    "CompleteAbort": "the last transaction was aborted, none is open",
    "PrepareEpochFence": "its former producer is being shut out",
    "Dead": "it has gone",
}
"""What the states of the transaction coordinator mean."""

HANGING = """\
A hanging transaction keeps readers with isolation.level=read_committed from all that follows it
in its partition. To end one: odradek transactions abort TOPIC:PARTITION --start-offset N"""


COPIED = ("producer_id", "open_since_offset")
"""Numbers that people copy into other commands, so no commas stand in them."""


def producer_json(producer: ProducerOfPartition) -> dict[str, int | str | None]:
    """A producer that a partition remembers, for `--json`."""
    return {
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "coordinator_epoch": producer.coordinator_epoch,
        "last_sequence": producer.last_sequence,
        "last_timestamp": producer.last_timestamp,
        "open_since_offset": producer.open_since_offset,
    }


def with_times(row: Mapping[str, object]) -> list[object]:
    """A row's cells, times and durations for people."""
    shown = dict(row)
    for name in COPIED:
        if shown.get(name) is not None:
            shown[name] = str(shown[name])
    if isinstance(stamp := row.get("last_timestamp"), int):
        shown["last_timestamp"] = format_time(stamp) if stamp >= 0 else None
    if isinstance(age := row.get("age_ms"), int):
        shown["age_ms"] = format_duration(age)
    return list(shown.values())


def description_json(found: TransactionDescription, age_ms: int | None) -> dict[str, object]:
    """A transactional id for `--json`, open for so long, if it is in a transaction."""
    return {
        "id": found.transactional_id,
        "state": found.state,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "timeout_ms": found.timeout_ms,
        "started": found.started_ms,
        "age_ms": age_ms,
        "partitions": [f"{topic}:{index}" for topic, index in sorted(found.partitions)],
        "coordinator": found.coordinator,
    }


def show_description(found: TransactionDescription, age_ms: int | None) -> None:
    """The table of a transactional id on standard output."""
    remarks = [meaning_of(found.state)]
    if age_ms is not None and age_ms > found.timeout_ms:
        remarks.append("it is open for longer than its time-out: its coordinator will abort it")
    show_table(
        ["producer id", "epoch", "time-out", "began", "open for", "partitions", "coordinator"],
        [
            [
                str(found.producer_id),
                found.producer_epoch,
                format_duration(found.timeout_ms),
                None if found.started_ms is None else format_time(found.started_ms),
                None if age_ms is None else format_duration(age_ms),
                format_partitions(found.partitions) or None,
                found.coordinator,
            ]
        ],
        title=f"{found.transactional_id}: {found.state}",
        legend="\n".join(remarks),
    )


def meaning_of(state: str) -> str:
    """A state and what it means."""
    return f"{state}: {STATE_MEANINGS.get(state, 'a state this release does not know')}"


def state_legend(states: set[str]) -> str:
    """What those states mean, for below a table."""
    return "\n".join(meaning_of(state) for state in sorted(states))
