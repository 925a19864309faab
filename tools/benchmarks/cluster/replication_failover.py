"""How long nobody's records are acknowledged after the leader of their partition is killed.

    python -m odradek.tools.benchmarks.cluster.replication_failover [--runs 5]

Three processes on one file of metadata; a topic of one partition on all three, of which two
have to have a record (min.insync.replicas 2). A producer with acks=all and idempotence sends a
record every few milliseconds. The leader is killed with SIGKILL; the clock runs from then until
a record that was sent after it is acknowledged. librdkafka looks for a new leader by timers of its
own; so beside it stands a plain client that asks the other brokers again and again who leads, and
sends its record there. The controller is killed with it where
it happens to be the same broker, which each second run sees to.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import threading
import time
from contextlib import ExitStack

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ....bench.loads.wire import wire_to
from ....protocol import messages
from ....protocol.records import build_batch
from ..measure import machine, summary, verdict
from .clusters import BROKER_IDS, SECONDS_MAX, ClusterUnderTest, in_three_processes

SECONDS_GOAL = 1.5
FAILOVER_TOPIC = "failover"
RECORDS_BEFORE = 200
RECORD_INTERVAL_SECONDS = 0.002
"""Between two records, and between two questions of the plain client."""
PRODUCE_VERSION = 9
QUIET = {"log_level": 0, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100}


class SteadyProducer:
    """Sends a record every few milliseconds.

    Attributes:
        sent: how many.
        acknowledged: the first so many of them are.
    """

    def __init__(self, bootstrap: str) -> None:
        self.sent = 0
        self.acknowledged = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 0,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 100,
                **QUIET,
            }
        )

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        self.acknowledged += 1

    def send_until(self, acknowledged: int) -> float:
        """Go on until so many records are acknowledged; returns when that was."""
        deadline = time.perf_counter() + SECONDS_MAX
        while self.acknowledged < acknowledged:
            assert time.perf_counter() < deadline, "nothing is acknowledged any more"
            self._producer.produce(FAILOVER_TOPIC, b"record", on_delivery=self._delivered)
            self.sent += 1
            self._producer.poll(RECORD_INTERVAL_SECONDS)
        return time.perf_counter()

    def flush(self) -> None:
        """Wait for what is on its way."""
        assert self._producer.flush(SECONDS_MAX) == 0


def acknowledged_elsewhere(addresses: list[str]) -> float:
    """When these brokers have acknowledged a plain client's record with acks=all."""
    make = messages.ProduceRequest
    batch = build_batch([(None, b"plain", int(time.time() * 1000), ())])
    data = make.PartitionProduceData(index=0, records=batch)
    topic = make.TopicProduceData(name=FAILOVER_TOPIC, partition_data=[data])
    request = make(acks=-1, timeout_ms=int(SECONDS_MAX * 1000), topic_data=[topic])
    deadline = time.perf_counter() + SECONDS_MAX
    with ExitStack() as stack:
        wires = [stack.enter_context(wire_to(address)) for address in addresses]
        for wire in itertools.cycle(wires):
            answer = wire.ask(request, PRODUCE_VERSION)
            if answer.responses[0].partition_responses[0].error_code == 0:
                break
            assert time.perf_counter() < deadline, "nothing is acknowledged any more"
            time.sleep(RECORD_INTERVAL_SECONDS)
    return time.perf_counter()


def leader_of(admin: AdminClient) -> int:
    return int(
        admin.list_topics(FAILOVER_TOPIC, timeout=10).topics[FAILOVER_TOPIC].partitions[0].leader
    )


def fail_over(cluster: ClusterUnderTest, *, controller_too: bool) -> tuple[float, float]:
    """Seconds from the kill of the leader to an acknowledgement elsewhere.

    To librdkafka, and to a plain client.
    """
    bootstrap = ",".join(cluster.addresses.values())
    controller = cluster.controller()
    others = [each for each in BROKER_IDS if each != controller]
    order = [controller, *others] if controller_too else [*others, controller]
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    topic = NewTopic(
        FAILOVER_TOPIC, 1, replica_assignment=[order], config={"min.insync.replicas": "2"}
    )
    admin.create_topics([topic])[FAILOVER_TOPIC].result(SECONDS_MAX)
    producer = SteadyProducer(bootstrap)
    producer.send_until(RECORDS_BEFORE)
    leader = leader_of(admin)
    assert leader == order[0]
    cluster.processes[leader].kill()
    killed = time.perf_counter()
    plain: list[float] = []
    rest = [address for broker_id, address in cluster.addresses.items() if broker_id != leader]
    thread = threading.Thread(target=lambda: plain.append(acknowledged_elsewhere(rest)))
    thread.start()
    came = producer.send_until(producer.sent + 1)
    thread.join()
    producer.flush()
    assert leader_of(admin) != leader
    return came - killed, plain[0] - killed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="each on a cluster of its own")
    arguments = parser.parse_args()
    print(machine())
    seconds: list[tuple[float, float]] = []
    for run in range(arguments.runs):
        with in_three_processes() as cluster:
            controller_too = bool(run % 2)
            seconds.append(fail_over(cluster, controller_too=controller_too))
            who = "leader and controller" if controller_too else "leader"
            print(f"{who} killed: {seconds[-1][0]:.3f} s, a plain client {seconds[-1][1]:.3f} s")
    reached = True
    for name, times in zip(
        ("to librdkafka", "to a plain client"), zip(*seconds, strict=True), strict=True
    ):
        print(f"failover {name} {summary(times, 's')}")
        median = statistics.median(times)
        reached &= verdict(f"acknowledged {name}", median, SECONDS_GOAL, "s", at_most=True)
    raise SystemExit(not reached)


if __name__ == "__main__":
    main()
