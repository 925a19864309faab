"""Cut links, moved leaders, shrunk ISRs and lost brokers of a cluster, as clients meet them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

from odradek.testing import Cluster
from odradek.testing.conditions import NotReached, isr_is, leader_is
from odradek.testing.control.client import ControlError
from odradek.testing.waiting import wait_until

WAIT_SECONDS_MAX = 60.0
SETTINGS = {"replica.lag.time.max.ms": "4000", "min.insync.replicas": "2"}
BROKERS = {1, 2, 3}


@pytest.fixture(scope="module")
def one_cluster() -> Iterator[Cluster]:
    with Cluster(3, SETTINGS) as cluster:
        yield cluster


@pytest.fixture
def cluster(one_cluster: Cluster) -> Iterator[Cluster]:
    one_cluster.create_topic("orders")
    yield one_cluster
    one_cluster.heal()
    for broker in one_cluster.brokers:
        broker.thaw()
        if not broker.is_running:
            broker.start()
    one_cluster.reset()


@pytest.fixture
def producer(cluster: Cluster) -> Iterator[KafkaProducer]:
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers, acks="all", retry_backoff_ms=20
    )
    yield producer
    producer.close(timeout=1)


def id_of(cluster: Cluster, broker: object) -> int:
    return next(number for number in BROKERS if cluster.broker(number) is broker)


def leader_and_followers(cluster: Cluster) -> tuple[int, list[int]]:
    leader = id_of(cluster, cluster.leader_of("orders"))
    return leader, sorted(BROKERS - {leader})


def test_a_moved_leader_is_followed_by_clients(cluster: Cluster, producer: KafkaProducer) -> None:
    _, (to, _) = leader_and_followers(cluster)
    cluster.wait_until(isr_is("orders", 0, BROKERS), timeout=WAIT_SECONDS_MAX)
    producer.send("orders", b"before").get(WAIT_SECONDS_MAX)
    cluster.move_leader("orders", 0, to)
    assert cluster.topic("orders").partitions[0].leader == to
    mark = cluster.broker(to).requests.mark()
    producer.send("orders", b"after").get(WAIT_SECONDS_MAX)
    assert cluster.broker(to).requests.since(mark).of("Produce", topic="orders").count() >= 1
    assert [record.value for record in cluster.read("orders")] == [b"before", b"after"]
    with pytest.raises(ControlError, match=r"there is no partition orders-7"):
        cluster.move_leader("orders", 7, to)


def test_a_follower_out_of_the_isr_is_not_waited_for(
    cluster: Cluster, producer: KafkaProducer
) -> None:
    leader, (without, other) = leader_and_followers(cluster)
    assert sorted(cluster.shrink_isr("orders", 0, without=without)) == sorted([leader, other])
    producer.send("orders", b"value").get(WAIT_SECONDS_MAX)
    behind = cluster.broker(without).topic("orders").partitions[0]
    assert behind.log_end_offset == 0
    with pytest.raises(ControlError, match=rf"broker {without} .*not in the ISR"):
        cluster.move_leader("orders", 0, without)
    cluster.restore_isr("orders", 0, without)
    cluster.wait_until(isr_is("orders", 0, BROKERS), timeout=WAIT_SECONDS_MAX)
    assert cluster.broker(without).topic("orders").partitions[0].log_end_offset == 1


def test_a_broker_cut_off_from_the_others_is_served_and_falls_behind(
    cluster: Cluster, producer: KafkaProducer
) -> None:
    leader, (alone, other) = leader_and_followers(cluster)
    cluster.isolate(alone)
    producer.send("orders", b"value").get(WAIT_SECONDS_MAX)  # waits until it is out of the ISR
    cluster.wait_until(isr_is("orders", 0, {leader, other}), timeout=WAIT_SECONDS_MAX)
    consumer = KafkaConsumer(bootstrap_servers=cluster.broker(alone).bootstrap_servers)
    assert "orders" in consumer.topics()
    consumer.close()
    assert cluster.broker(alone).topic("orders").partitions[0].log_end_offset == 0
    cluster.heal(alone)
    cluster.wait_until(isr_is("orders", 0, BROKERS), timeout=WAIT_SECONDS_MAX)
    assert cluster.broker(alone).topic("orders").partitions[0].log_end_offset == 1


def test_a_leader_cut_off_from_its_followers_takes_no_more_records(cluster: Cluster) -> None:
    leader, followers = leader_and_followers(cluster)
    errors: list[str] = []
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "acks": "all",
            "retries": 0,
            "message.timeout.ms": int(WAIT_SECONDS_MAX * 1000),
        }
    )
    for follower in followers:
        cluster.cut(leader, follower, silent=True)
    trusting = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, acks=1)
    trusting.send("orders", b"not replicated").get(WAIT_SECONDS_MAX)
    trusting.close()
    cluster.wait_until(isr_is("orders", 0, {leader}), timeout=WAIT_SECONDS_MAX)
    producer.produce("orders", b"value", on_delivery=lambda error, _: errors.append(error.name()))
    producer.flush(WAIT_SECONDS_MAX)
    assert errors == ["NOT_ENOUGH_REPLICAS"]
    assert cluster.broker(leader).requests.of("Produce", error="NOT_ENOUGH_REPLICAS").count() == 1


def test_cut_links_stay_cut_over_a_restart(cluster: Cluster) -> None:
    leader, follower = sorted(BROKERS - {id_of(cluster, cluster.controller())})
    cluster.move_leader("orders", 0, leader)
    with cluster.link_cut(leader, follower):
        broker = cluster.broker(follower)
        broker.kill()
        logged = len(broker.log)
        broker.start()
        wait_until(
            lambda: "the link was cut by a test" in broker.log[logged:],
            WAIT_SECONDS_MAX,
            lambda: broker.log[logged:],
        )
    cluster.wait_until(isr_is("orders", 0, BROKERS), timeout=WAIT_SECONDS_MAX)


def test_another_broker_leads_after_a_kill(cluster: Cluster, producer: KafkaProducer) -> None:
    leader, followers = leader_and_followers(cluster)
    producer.send("orders", b"before").get(WAIT_SECONDS_MAX)
    cluster.broker(leader).kill()
    producer.send("orders", b"after").get(WAIT_SECONDS_MAX)
    assert id_of(cluster, cluster.leader_of("orders")) in followers
    assert [record.value for record in cluster.read("orders")] == [b"before", b"after"]
    with pytest.raises(ControlError, match="the broker is not running"):
        cluster.broker(leader).topics()
    cluster.broker(leader).start()
    cluster.wait_until(isr_is("orders", 0, BROKERS), timeout=WAIT_SECONDS_MAX)


def test_time_passes_for_all_brokers_and_they_stay_in_sync(
    cluster: Cluster, producer: KafkaProducer
) -> None:
    producer.send("orders", b"value").get(WAIT_SECONDS_MAX)
    cluster.broker(3).kill()
    assert cluster.advance_time(hours=1) == 3600
    cluster.broker(3).start()
    for broker in cluster.brokers:
        assert abs(broker.clock() - time.time() - 3600) < 60
    cluster.wait_until(isr_is("orders", 0, BROKERS), timeout=WAIT_SECONDS_MAX)
    cluster.advance_time(hours=1)
    with pytest.raises(NotReached):
        cluster.wait_until(
            lambda each: len(each.topic("orders").partitions[0].isr) < 3, timeout=0.2
        )


def test_groups_and_transactions_are_found_on_whichever_broker_knows_them(
    cluster: Cluster,
) -> None:
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers, transactional_id="shipper"
    )
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", b"value").get(WAIT_SECONDS_MAX)
    open_one = cluster.transaction("shipper")
    assert open_one is not None
    assert (open_one.state, open_one.partitions) == ("Ongoing", (("orders", 0),))
    assert [each.producer_id for each in cluster.producers("orders")] == [open_one.producer_id]
    cluster.fence_producer("shipper")
    with pytest.raises(KafkaError):
        producer.commit_transaction()
    producer.close(timeout=1)
    assert cluster.read("orders", committed_only=True) == []

    consumer = KafkaConsumer(
        bootstrap_servers=cluster.bootstrap_servers, group_id="g", client_id="reader"
    )
    assert consumer.partitions_for_topic("orders") == {0}  # before it joins, and shares it
    consumer.subscribe(["orders"])
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while cluster.group("g").state != "Stable":
        assert time.monotonic() < deadline, cluster.group("g")
        consumer.poll(timeout_ms=20)
    assert cluster.groups() == ["g"]
    cluster.expire_session("g", "reader")
    assert cluster.group("g").members == ()
    consumer.close()


def test_a_cluster_is_emptied_and_no_broker_of_it_alone(cluster: Cluster) -> None:
    with pytest.raises(ControlError, match=r"other brokers are there|NOT_CONTROLLER"):
        cluster.broker(1).reset()
    cluster.reset()
    for broker in cluster.brokers:
        assert broker.topics(internal=True) == []


def test_the_wrong_leader_is_reported(cluster: Cluster) -> None:
    leader, (other, _) = leader_and_followers(cluster)
    with pytest.raises(NotReached) as reported:
        cluster.wait_until(leader_is("orders", 0, other), timeout=0.05)
    assert f"broker {other} leads orders-0" in str(reported.value)
    assert f"seen: broker {leader} leads it" in str(reported.value)


def test_a_broker_whose_metadata_session_ended_comes_back(
    cluster: Cluster, producer: KafkaProducer
) -> None:
    controller = cluster.controller()
    controller.expire_metadata_session()
    assert "the metadata store ended session" in controller.log
    cluster.wait_until(isr_is("orders", 0, BROKERS), timeout=WAIT_SECONDS_MAX)
    producer.send("orders", b"value").get(WAIT_SECONDS_MAX)
    assert [record.value for record in cluster.read("orders")] == [b"value"]
