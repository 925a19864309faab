"""Draws the state tables: docs/group_states.md, consumer_group_states.md, share_group_states.md,
streams_group_states.md, transaction_states.md, controller_states.md and client_states.md.

Run `python -m odradek.tools.docs.state_diagram` after a change; a test compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from ...broker.share.record_states import RECORD_TRANSITIONS
from ...client.consumer.group import classic_membership, consumer_membership
from ...client.producer import transaction_manager
from ...common.errors import ErrorCode
from ...common.state_table import StateTable
from ...controller.partitions.states import (
    PARTITION_TRANSITIONS,
    REPLICA_TRANSITIONS,
    PartitionStatus,
    ReplicaStatus,
)
from ...coordinator.group.classic import states as classic
from ...coordinator.group.consumer import states as consumer
from ...coordinator.group.share.states import SHARE_GROUP_TRANSITIONS
from ...coordinator.group.streams import states as streams
from ...coordinator.transaction import states as transaction

DOCS = Path(__file__).parents[2] / "docs"


def pages() -> dict[str, str]:
    """The documents by their names in `docs/`."""
    return {
        "group_states.md": _group_page(),
        "consumer_group_states.md": _consumer_group_page(),
        "share_group_states.md": _share_group_page(),
        "streams_group_states.md": _streams_group_page(),
        "transaction_states.md": _transaction_page(),
        "controller_states.md": _controller_page(),
        "client_states.md": _client_page(),
    }


def _group_page() -> str:
    answers = [
        (state.value, each.heartbeat.name, each.sync.name, each.commit.name, each.reason)
        for state, each in classic.ANSWERS.items()
    ]
    return _page(
        "The states of a classic group",
        "coordinator/group/classic/states.py",
        "",
        _section("What moves a group", classic.TRANSITIONS),
        ["## What a member of the current generation is answered", ""],
        _table(("in", "Heartbeat", "SyncGroup", "OffsetCommit", "because"), answers),
    )


def _consumer_group_page() -> str:
    return _page(
        "The states of a consumer group and of its members",
        "coordinator/group/consumer/states.py",
        "Groups of KIP-848, which the broker assigns and whose members follow one by one. The\n"
        "states of classic groups are in [group_states.md](group_states.md).\n",
        _section("The group", consumer.GROUP_TRANSITIONS),
        _section("A member", consumer.MEMBER_TRANSITIONS),
    )


def _share_group_page() -> str:
    return _page(
        "The states of a share group and of its records",
        "broker/share/record_states.py` and `coordinator/group/share/states.py",
        "Members of a share group share the records of a partition (KIP-932). The leader of the\n"
        "partition keeps the states of the records that are under way, between the first that is\n"
        "not done with and the first that was never handed out. What becomes of a record counts\n"
        "once it is stored in `__share_group_state`.\n",
        _section("A record", RECORD_TRANSITIONS),
        _section("The group", SHARE_GROUP_TRANSITIONS),
    )


def _streams_group_page() -> str:
    return _page(
        "The states of a streams group and of its members",
        "coordinator/group/streams/states.py",
        "The instances of a Kafka Streams application in groups of KIP-1071. A group is not ready\n"
        "while topics that its topology needs are missing.\n",
        _section("The group", streams.STREAMS_GROUP_TRANSITIONS),
        _section("A member", streams.STREAMS_MEMBER_TRANSITIONS),
    )


def _transaction_page() -> str:
    tables = (
        transaction.FIRST_GENERATION,
        transaction.SECOND_GENERATION_NEW,
        transaction.SECOND_GENERATION_AGAIN,
    )
    ends = [
        (state.shown, *(text for table in tables for text in _end_texts(state, table.get(state))))
        for state in transaction.FIRST_GENERATION
    ]
    heads = [
        f"{generation}: {end}"
        for generation in ("first", "second, new", "second, again")
        for end in ("commit", "abort")
    ]
    return _page(
        "The states of a transactional id",
        "coordinator/transaction/states.py",
        "A change counts once its record is on enough replicas of `__transaction_state`. Until\n"
        "then it is pending, and every other request for the id is answered\n"
        "CONCURRENT_TRANSACTIONS. A coordinator that takes over reads the last record of each id\n"
        "and goes on from there: what is prepared is completed, with markers written a second\n"
        "time if need be.\n",
        _section("What moves a transactional id", transaction.TRANSITIONS),
        [
            "## What EndTxn does",
            "",
            "The first generation is EndTxn 0 to 4, the second EndTxn 5 (KIP-890). In the second,",
            "a request with the current epoch is new; one with the epoch before has come again.",
            "Any other epoch is PRODUCER_FENCED.",
            "",
        ],
        _table(("in", *heads), ends),
    )


def _end_texts(
    state: transaction.TransactionState, cell: transaction.EndCell | None
) -> Sequence[str]:
    if cell is None:
        return [ErrorCode.PRODUCER_FENCED.name] * 2
    return [
        f"goes to {transaction.TRANSITIONS.next_state(state, verdict).shown}"
        if isinstance(verdict, transaction.TransactionEvent)
        else "NONE, as before"
        if verdict is ErrorCode.NONE
        else verdict.name
        for verdict in cell
    ]


def _controller_page() -> str:
    return _page(
        "The states of partitions and replicas",
        "controller/partitions/states.py",
        "",
        _section("A partition", PARTITION_TRANSITIONS),
        _meanings(PartitionStatus),
        _section("A replica", REPLICA_TRANSITIONS),
        _meanings(ReplicaStatus),
    )


def _client_page() -> str:
    return _page(
        "The states of odradek's client",
        "client/consumer/group/` and `client/producer/transaction_manager.py",
        "What the other side of these is: [group_states.md](group_states.md),\n"
        "[consumer_group_states.md](consumer_group_states.md) and\n"
        "[transaction_states.md](transaction_states.md).\n",
        _section(
            'A consumer as a member of a classic group (`group_protocol="classic"`)',
            classic_membership.TRANSITIONS,
        ),
        _section(
            'A consumer as a member of a group of KIP-848 (`group_protocol="consumer"`)',
            consumer_membership.TRANSITIONS,
        ),
        _section("A transactional producer", transaction_manager.STATES),
    )


def _meanings(states: Iterable[Enum]) -> list[str]:
    return _table(("state", "meaning"), [(state.name, state.value) for state in states])


def _page(title: str, source: str, introduction: str, *parts: list[str]) -> str:
    head = (
        f"# {title}\n\nDrawn from the tables in `{source}` by\n"
        "`python -m odradek.tools.docs.state_diagram`; a test fails when it is out of date.\n"
    )
    lines = [head] + ([introduction] if introduction else [])
    return "\n".join(lines + [line for part in parts for line in part]).rstrip() + "\n"


def _section(title: str, table: StateTable[Any]) -> list[str]:
    """A heading, the diagram, and the transitions with their reasons."""
    label = table.label
    lines = [f"## {title}", "", "```mermaid", "stateDiagram-v2"]
    names = dict.fromkeys(
        label(each) for row in table.transitions for each in (row.source, row.target)
    )
    lines += [f'    state "{name}" as {_identifier(name)}' for name in names if " " in name]
    if table.initial is not None:
        lines.append(f"    [*] --> {_identifier(label(table.initial))}")
    for row in table.transitions:
        arrow = f"    {_identifier(label(row.source))} --> {_identifier(label(row.target))}"
        lines.append(f"{arrow}: {row.cause}" if row.cause else arrow)
    if table.final is not None:
        lines.append(f"    {_identifier(label(table.final))} --> [*]")
    lines += ["```", ""]
    rows = [
        (label(row.source), row.cause, f"**{label(row.target)}**", row.reason)
        for row in table.transitions
    ]
    if any(row.cause for row in table.transitions):
        return lines + _table(("from", "when", "to", "because"), rows)
    return lines + _table(("from", "to", "because"), [(source, *rest) for source, _, *rest in rows])


def _identifier(name: str) -> str:
    """A state's name as a diagram has it, in which it is one word."""
    return name.replace(" ", "_")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines += [f"| **{first}** | {' | '.join(rest)} |" for first, *rest in rows]
    return [*lines, ""]


if __name__ == "__main__":
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")
