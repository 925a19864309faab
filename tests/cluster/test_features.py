"""Finalized features on a cluster of three: changed at any broker, followed by all."""

from __future__ import annotations

import pytest
from kafka import KafkaAdminClient
from support.broker_cluster import BROKER_IDS, BrokerCluster

from odradek.common.errors import ErrorCode
from odradek.metadata_store.znodes import FEATURE, FeatureNode, encode_feature
from odradek.protocol import messages
from odradek.testing.process.broker_process import BrokerStartError
from odradek.testing.waiting import wait_until

GROUP = "group.version"
SHARE = "share.version"
STREAMS = "streams.version"
TRANSACTION = "transaction.version"
SAFE_DOWNGRADE = 2


def finalized(cluster: BrokerCluster, broker_id: int) -> tuple[int, dict[str, int]]:
    """Epoch and levels, as a broker tells its clients."""
    request = messages.ApiVersionsRequest(client_software_name="x", client_software_version="1")
    answer = cluster.ask(broker_id, request, 4)
    levels = {each.name: each.max_version_level for each in answer.finalized_features}
    return answer.finalized_features_epoch, levels


def update(cluster: BrokerCluster, broker_id: int, name: str, level: int, kind: int) -> int:
    make = messages.UpdateFeaturesRequest
    target = make.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
    answer = cluster.ask(broker_id, make(timeout_ms=60_000, feature_updates=[target]), 2)
    return int(answer.error_code)


def test_features_are_changed_at_every_broker_and_all_follow(cluster: BrokerCluster) -> None:
    cluster.agreed()
    first = (0, {GROUP: 1, SHARE: 1, STREAMS: 1, TRANSACTION: 2})
    wait_until(lambda: all(finalized(cluster, each) == first for each in BROKER_IDS))
    level = 2
    for epoch, (broker_id, kind) in enumerate(((1, 2), (2, 3), (3, 1)), start=1):
        level += 1 if kind == 1 else -1
        assert update(cluster, broker_id, TRANSACTION, level, kind) == ErrorCode.NONE
        levels = (
            {GROUP: 1, SHARE: 1, STREAMS: 1, TRANSACTION: level}
            if level
            else {GROUP: 1, SHARE: 1, STREAMS: 1}
        )
        assert finalized(cluster, broker_id) == (epoch, levels), "in force where it was asked"
        wait_until(
            lambda expected=(epoch, levels): all(  # type: ignore[misc]  # bound at once
                finalized(cluster, each) == expected for each in BROKER_IDS
            )
        )
    last = finalized(cluster, 1)
    cluster.brokers[cluster.agreed().controller].kill()
    cluster.agreed()
    assert update(cluster, cluster.running[0], GROUP, 1, 1) == ErrorCode.NONE
    assert {finalized(cluster, each) == last for each in cluster.running} == {True}


def test_an_admin_client_describes_and_updates_features(cluster: BrokerCluster) -> None:
    cluster.agreed()
    with KafkaAdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        reported = admin.describe_features()
        assert reported[TRANSACTION] == {
            "supported": (0, 2),
            "finalized": (2, 2),
            "finalized_epoch": 0,
        }
        answer = admin.update_features({TRANSACTION: ("SAFE_DOWNGRADE", 1)})
        assert answer == {TRANSACTION: "OK"}
    wait_until(
        lambda: all(finalized(cluster, each)[1][TRANSACTION] == 1 for each in cluster.running)
    )


def test_a_broker_leaves_a_cluster_that_finalized_more_than_it_has(
    cluster: BrokerCluster,
) -> None:
    cluster.agreed()
    cluster.write_in_tree(FEATURE, encode_feature(FeatureNode({TRANSACTION: 3})))
    wait_until(lambda: not cluster.running)
    with pytest.raises(BrokerStartError, match=r"transaction\.version is finalized at level 3"):
        cluster.brokers[1].start()
