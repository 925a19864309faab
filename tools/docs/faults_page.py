"""Writes `docs/faults.md` from the table of faults: `python -m odradek.tools.docs.faults_page`."""

from __future__ import annotations

from collections.abc import Sequence

from ...testing.faults.fault import Fault
from .client_outcomes import (
    AIOKAFKA,
    ALL_CLIENTS,
    CLIENTS,
    COMMITTING_OUTAGES,
    CONNECTION_FAULTS,
    FAULTS,
    FETCH_FAULTS,
    IDEMPOTENT,
    LATE,
    OK,
    RETRYING_OUTAGES,
    SENDING_OUTAGES,
    SENDS,
    SHARING_OUTAGES,
    TRANSACTION_OUTAGES,
    TRIGGERS,
    FaultRow,
    OutageRow,
    TriggerRow,
)

EXAMPLE_TOPIC = "orders"
ORDINALS = ("1st", "2nd", "3rd", "4th")

FAULTS_PAGE_HEAD = f"""# Faults and outages, and what clients make of them

Written by `python -m odradek.tools.docs.faults_page`; a test holds it current. How to set one is
told in [testing.md](testing.md#faults), and how to make an outage, too.

Every line is a test with real clients: `tests/testing/test_faults_table.py`. "{OK}" is what
ends well, "{LATE}" what takes noticeably longer; anything else is the client's name of
the error that it reports. Clients have short time limits there, so that nobody waits long for
what never comes.
"""

SENDING = f"""
## A producer that does not retry

It sends {SENDS} records, one after the other, each in a request of its own. Whether the record is
in the topic all the same is what tells faults apart that look alike to a client: after the same
error, to send again may be needed, or may write the record a second time.

"""

WHEN = """
## When

A fault counts the requests that it is about, as they come, and strikes:

"""

RETRYING = """
## A producer that retries

Its first request is struck, and no more. Without idempotence the record may be there twice; with it
(`enable_idempotence`) it is there once, whatever struck.

"""

CONSUMING = """
## A consumer

It reads a topic from its beginning, and one request is struck. confluent-kafka is set to check
checksums (`check.crcs`), which the others do by default.

"""

CONNECTING = """
## A client that connects

It knows the broker's address and asks for the topics there are. Its connections are reset:
`faults.refuse_connections()`.

"""

OUTAGES = """
## Outages

A client does something, the outage comes, it does the same again, and once more when the outage is
over: before and afterwards all succeed. `tests/testing/test_outages_table.py`.

### A producer that does not retry sends a record

A frozen broker has the record in its sockets already, writes it when it wakes, and answers too
late.

"""

OUTAGES_RETRIED = """
### An idempotent producer, which retries, sends a record

It is there, and once.

"""

OUTAGES_COMMITTING = """
### A consumer commits what it has read

What was not committed comes again.

"""

OUTAGES_TRANSACTIONS = """
### A producer commits its transaction

What was not committed is aborted; another producer with the same id goes on.

"""

OUTAGES_SHARING = """
### A member of a share group acknowledges its record

The record comes again, to it or to another, and its delivery count is one more. Of these clients
confluent-kafka alone has share groups.

"""

TRIGGERED = """
## Every fault with every trigger

What each send comes to, of the producers that do not retry.
"""


def faults_page() -> str:
    """The whole page."""
    sections = [_section(fault) for fault in FAULTS]
    parts = [
        FAULTS_PAGE_HEAD,
        _sending(),
        _retrying(),
        _consuming(),
        _connecting(),
        _when(),
        _outages(),
    ]
    return "".join([*parts, TRIGGERED, *sections])


def _sending() -> str:
    rows = [
        [
            f"[{fault.name}](#{_anchor(fault.name)})",
            _sentence(fault.make(EXAMPLE_TOPIC)),
            *(_seen(fault.seen[client]) for client in CLIENTS),
            _yes(fault.is_kept),
        ]
        for fault in FAULTS
    ]
    return SENDING + _table(["fault", "what happens", *CLIENTS, "in the topic"], rows)


def _retrying() -> str:
    rows = [
        [fault.name, _seen(fault.retried[0]), _times(fault.retried[1])]
        + [f"{OK}, {_times(1)}"] * len(IDEMPOTENT)
        for fault in FAULTS
    ]
    return RETRYING + _table(["fault", AIOKAFKA, "the record is there", *IDEMPOTENT], rows)


def _consuming() -> str:
    rows = [
        [
            row.name,
            _sentence(row.make(EXAMPLE_TOPIC)),
            *(_seen(row.seen[client]) for client in ALL_CLIENTS),
        ]
        for row in FETCH_FAULTS
    ]
    return CONSUMING + _table(["fault", "what happens", *ALL_CLIENTS], rows)


def _connecting() -> str:
    rows = [
        [f"`.{row.name}`", *(_seen(row.seen[client]) for client in ALL_CLIENTS)]
        for row in CONNECTION_FAULTS
    ]
    return CONNECTING + _table(["trigger", *ALL_CLIENTS], rows)


def _when() -> str:
    rows = [
        [f"`.{trigger.name}`", *("struck" if each else "" for each in trigger.struck)]
        for trigger in TRIGGERS
    ]
    return WHEN + _table(["trigger", *(f"{ordinal} request" for ordinal in ORDINALS)], rows)


def _outages() -> str:
    return "".join(
        [
            OUTAGES + _outage_table(SENDING_OUTAGES, "in the topic"),
            OUTAGES_RETRIED + _outage_table(RETRYING_OUTAGES, "in the topic"),
            OUTAGES_COMMITTING + _outage_table(COMMITTING_OUTAGES, "committed"),
            OUTAGES_TRANSACTIONS + _outage_table(TRANSACTION_OUTAGES, "committed"),
            OUTAGES_SHARING + _outage_table(SHARING_OUTAGES, "acknowledged"),
        ]
    )


def _outage_table(rows: Sequence[OutageRow], kept: str) -> str:
    cells = [
        [row.name, f"`{row.how}`", *map(_seen, row.seen.values()), _yes(row.is_kept)]
        for row in rows
    ]
    return _table(["outage", "a test says", *rows[0].seen, kept], cells)


def _section(fault: FaultRow) -> str:
    """A fault with every trigger."""
    rows = [_under_trigger(fault, trigger) for trigger in TRIGGERS]
    head = f"\n### {fault.name}\n\n"
    return head + _table(["trigger", *CLIENTS, "in the topic"], rows)


def _under_trigger(fault: FaultRow, trigger: TriggerRow) -> list[str]:
    seen = [
        ", ".join(fault.seen[client] if struck else OK for struck in trigger.struck)
        for client in CLIENTS
    ]
    kept = [
        ordinal
        for ordinal, struck in zip(ORDINALS, trigger.struck, strict=True)
        if fault.is_kept or not struck
    ]
    return [f"`.{trigger.name}`", *seen, ", ".join(kept) or "none"]


def _sentence(fault: Fault) -> str:
    """What happens, without when."""
    return str(fault).rpartition(";")[0]


def _seen(word: str) -> str:
    return word if word in (OK, LATE) else f"`{word}`"


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _times(count: int) -> str:
    return ("not at all", "once", "twice")[count]


def _anchor(heading: str) -> str:
    """The place of a heading in a page, as GitHub names it."""
    kept = "".join(each for each in heading.lower() if each.isalnum() or each in " -_")
    return kept.replace(" ", "-")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


if __name__ == "__main__":
    print(faults_page(), end="")
