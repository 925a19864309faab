"""Every outage in the table, met by real clients.

A few trials run at once, each with a broker or a cluster of its own, since most of their time is
waiting. One that came out otherwise is tried again alone, by a client with more patience: on a busy
machine one may give up early.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import pytest
from support.fault_clients import PATIENT_MS
from support.outage_trials import (
    GROUP,
    TOPIC,
    Seen,
    acknowledge,
    commit_offsets,
    commit_transaction,
    killed,
    killed_leader,
    moved_leader,
    produce,
    produce_patiently,
    wrong_clock,
)

from odradek.testing import Broker, Cluster
from odradek.tools.docs.client_outcomes import (
    COMMITTING_OUTAGES,
    OK,
    RETRYING_OUTAGES,
    SENDING_OUTAGES,
    SHARING_OUTAGES,
    TRANSACTION_OUTAGES,
    OutageRow,
)

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.timeout(900)]

AT_ONCE = 6

Act = Callable[[str, Any, Any], Seen]

OUTAGES: dict[str, Callable[[Any], Any]] = {
    "with broker.frozen(): ...": lambda broker: broker.frozen(),
    "with broker.full_disk(): ...": lambda broker: broker.full_disk(),
    "broker.set_clock_wrong(-7200)": wrong_clock,
    "broker.kill(); broker.start()": killed,
    "cluster.move_leader(topic, 0, to=2)": moved_leader,
    "cluster.leader_of(topic, 0).kill()": killed_leader,
    "broker.expire_session(group)": lambda broker: broker.expire_session(GROUP),
    "broker.force_rebalance(group)": lambda broker: broker.force_rebalance(GROUP),
    "broker.fence_producer(transactional_id)": lambda broker: broker.fence_producer("transfers"),
    "broker.expire_transaction(transactional_id)": (
        lambda broker: broker.expire_transaction("transfers")
    ),
    "broker.expire_lock(group, topic, partition)": (
        lambda broker: broker.expire_lock(GROUP, TOPIC, 0)
    ),
}


class Trial(NamedTuple):
    act: Act
    row: OutageRow
    client: str

    def __str__(self) -> str:
        return f"{self.client}, {self.act.__name__}, {self.row.name}"

    def expected(self) -> Seen:
        records = [b"before", b"during", b"after"] if self.row.is_kept else [b"before", b"after"]
        if self.act in (commit_offsets, acknowledge):  # what is not kept comes again
            records = [b"before", b"after"] if self.row.is_kept else [b"before", *records]
        return Seen(self.row.seen[self.client], OK, records)

    def run(self, *, is_patient: bool = False) -> Seen:
        act = self.act
        if is_patient and act is produce:
            act = partial(produce, give_up_ms=PATIENT_MS)
        with Cluster(self.row.brokers) if self.row.brokers > 1 else Broker() as place:
            return act(self.client, place, OUTAGES[self.row.how])


TRIALS = [
    Trial(act, row, client)
    for act, rows in (
        (produce_patiently, RETRYING_OUTAGES),
        (produce, SENDING_OUTAGES),
        (commit_offsets, COMMITTING_OUTAGES),
        (commit_transaction, TRANSACTION_OUTAGES),
        (acknowledge, SHARING_OUTAGES),
    )
    for row in rows
    for client in row.seen
]


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Seen | Exception]:
    """What came of all trials when a few ran at once, by their names."""

    def run(trial: Trial) -> Seen | Exception:
        try:
            return trial.run()
        except Exception as error:  # it is tried again
            return error

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return dict(zip(map(str, TRIALS), threads.map(run, TRIALS), strict=True))


@pytest.mark.parametrize("trial", TRIALS, ids=str)
def test_a_client_sees_of_an_outage_what_the_table_says(
    trial: Trial, outcomes: dict[str, Seen | Exception]
) -> None:
    outcome = outcomes[str(trial)]
    if outcome != trial.expected():
        outcome = trial.run(is_patient=True)
    assert outcome == trial.expected()
