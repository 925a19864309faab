"""A producer whose epochs are used up gets another producer id, and nothing is lost by that."""

from __future__ import annotations

from typing import Any

import pytest
from kafka import KafkaAdminClient
from support.transaction_peer import READ_UNCOMMITTED, TransactionPeer, settled

from odradek.common.errors import ErrorCode as E

pytestmark = [pytest.mark.clients, pytest.mark.soak, pytest.mark.timeout(600)]

LAST_EPOCH = 32_766
"""One less than an int16 can be: the coordinator keeps one to fence the producer."""
AT_ONCE = 500


@pytest.fixture
def worn(broker: Any, topic: str) -> TransactionPeer:
    """A producer with the last epoch."""
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        requested = {"num_partitions": 1, "replication_factor": 1}
        admin.create_topics({topic: requested}, wait_for_metadata=True)
    peer = TransactionPeer(broker.port, topic).start()
    peer.end_offset(topic, isolation=READ_UNCOMMITTED)
    while peer.producer_epoch < LAST_EPOCH:
        peer.init_often(min(AT_ONCE, LAST_EPOCH - peer.producer_epoch))
    return peer


def test_an_initialization_past_the_last_epoch_gives_another_producer_id(
    worn: TransactionPeer,
) -> None:
    former = worn.producer_id
    assert worn.init().error == E.NONE
    assert worn.producer_id != former
    assert worn.producer_epoch == 0


def test_an_end_past_the_last_epoch_gives_another_producer_id(
    worn: TransactionPeer, topic: str
) -> None:
    former = worn.producer_id
    assert worn.write(topic, version=12) == E.NONE
    assert worn.end(committed=True, version=5).error == E.NONE
    assert worn.producer_id != former
    assert worn.producer_epoch == 0
    again = {"producer_id": former, "producer_epoch": LAST_EPOCH}
    settled(lambda: worn.end(committed=True, version=5, keep=False, **again))
    assert worn.wait_stable(topic) == 2
    assert worn.write(topic, version=12) == E.NONE
    assert worn.end(committed=True, version=5).error == E.NONE
    assert worn.producer_epoch == 1
    assert worn.wait_stable(topic) == 4


def test_a_transaction_with_the_last_epoch_can_be_taken_over(
    worn: TransactionPeer, topic: str
) -> None:
    former = worn.producer_id
    assert worn.write(topic, version=12) == E.NONE
    assert worn.init().error == E.CONCURRENT_TRANSACTIONS
    settled(worn.init)
    assert worn.producer_id != former
    assert worn.producer_epoch == 1, "the first epoch was what the former one was aborted with"
    assert worn.wait_stable(topic) == 2
