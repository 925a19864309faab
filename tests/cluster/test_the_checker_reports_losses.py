"""The checker and its load are proved on brokers that lose records, and on ones that do not.

A leader gets records that its followers, frozen, do not have, and is killed; others lead, and
get other records; the former leader returns, follows them, and leads again. Records are alone
in their batches, so that what it fetches fits behind whatever it has.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.load_history import History
from support.load_senders import DELIVERY_SECONDS_MAX, SEND_ONCE_SECONDS_MAX, send_once
from support.replicated_cluster import TOPIC, ReplicatedCluster, finish_and_check
from support.replication_checker import ReplicationChecker
from support.steady_load import SteadyLoad

from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.timeout(600)

FIRST, SECOND, THIRD = 1, 2, 3
ALONE = 100
MORE = 300
EARLY = "early-acknowledgements"
NOBODY_LAGS = {"replica.lag.time.max.ms": "60000"}


def lead_alone_die_and_lead_again(folder: Path, fault: str) -> ReplicationChecker:
    with ReplicatedCluster(folder, settings=NOBODY_LAGS, fault=fault) as cluster:
        cluster.create_topic((FIRST, SECOND, THIRD))
        history = History()
        port = cluster.ports[FIRST]
        assert send_once(port, TOPIC, "all", ALONE, history, DELIVERY_SECONDS_MAX) == ALONE
        for follower in (SECOND, THIRD):
            cluster.pause(follower)
        assert send_once(port, TOPIC, "1", ALONE, history, DELIVERY_SECONDS_MAX) == 2 * ALONE
        # The leader has them, whatever it says; one that acknowledges early is to say so.
        patience = DELIVERY_SECONDS_MAX if fault == EARLY else SEND_ONCE_SECONDS_MAX
        send_once(port, TOPIC, "all", ALONE, history, patience)
        cluster.brokers[FIRST].kill()
        for follower in (SECOND, THIRD):
            cluster.resume(follower)
        with SteadyLoad(cluster.ports, TOPIC, 1, history=history, batched=False) as load:
            load.wait_end(0, 3 * ALONE + MORE)
            cluster.brokers[FIRST].start()
            cluster.wait_in_sync()
            load.stop_sending()
            leader = cluster.partitions()[0].leader
            cluster.brokers[leader].kill()
            wait_until(lambda: cluster.partitions()[0].leader == FIRST)
            cluster.brokers[leader].start()
            return finish_and_check(cluster, load)


def test_sound_brokers_lose_nothing_of_a_leader_that_was_ahead(tmp_path: Path) -> None:
    checker = lead_alone_die_and_lead_again(tmp_path, "")
    assert not checker.violations, checker.report()
    assert checker.counts["acknowledged"] > MORE
    assert checker.counts["kept"] >= 3 * checker.counts["acknowledged"]


@pytest.mark.parametrize("fault", ["no-truncation", EARLY])
def test_a_loss_is_reported(tmp_path: Path, fault: str) -> None:
    checker = lead_alone_die_and_lead_again(tmp_path, fault)
    assert "lost" in checker.kinds(), checker.report()
