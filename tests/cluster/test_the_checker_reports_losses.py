"""The checker and its load are proved on brokers that lose records, and on ones that do not.

A leader gets records that its followers, frozen, do not have, and is killed; others lead, and
get other records; the former leader returns, follows them, and leads again.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.broker_cluster import wait_until
from support.replicated_cluster import TOPIC, ReplicatedCluster, finish_and_check
from support.replication_checker import ReplicationChecker
from support.steady_load import SteadyLoad, send_unconfirmed

FIRST, SECOND, THIRD = 1, 2, 3
UNCONFIRMED = 100
MORE = 300
NOBODY_LAGS = {"replica.lag.time.max.ms": "60000"}


def lead_alone_die_and_lead_again(folder: Path, fault: str) -> ReplicationChecker:
    with ReplicatedCluster(folder, settings=NOBODY_LAGS, fault=fault) as cluster:
        cluster.create_topic((FIRST, SECOND, THIRD))
        with SteadyLoad(cluster.ports, TOPIC, partitions=1, batched=False) as load:
            assert load.history.wait_acknowledged(load.history.mark(), load.partitions)
            for follower in (SECOND, THIRD):
                cluster.pause(follower)
            end = send_unconfirmed(cluster.ports[FIRST], TOPIC, UNCONFIRMED, load.history)
            cluster.brokers[FIRST].kill()
            for follower in (SECOND, THIRD):
                cluster.resume(follower)
            load.wait_end(0, end + MORE)
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


@pytest.mark.parametrize("fault", ["no-truncation", "early-acknowledgements"])
def test_a_loss_is_reported(tmp_path: Path, fault: str) -> None:
    checker = lead_alone_die_and_lead_again(tmp_path, fault)
    assert "lost" in checker.kinds(), checker.report()
