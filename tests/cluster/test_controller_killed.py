"""The controller is killed in the middle of what it does; its successor brings it to an end."""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter

import pytest
from support.broker_cluster import BROKER_IDS, BrokerCluster, View
from support.cluster_clients import require_that_clients_see
from support.cluster_topics import create

from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.testing.waiting import wait_until

KILLS = 2
STORM_SECONDS = (0.1, 0.6)
STORM_SECONDS_MAX = 120.0
STORM_END_SECONDS_MAX = 120.0
"""Longer than any of its operations may take."""
KINDS = ("create", "delete", "reassign", "elect")
STEADY_TOPICS = 4
ELECT_VERSION = 2
REASSIGN_VERSION = 0
DELETE_VERSION = 4
PREFERRED = 0


class Storm(threading.Thread):
    """Creates, deletes, reassigns and elects without pause, through all brokers, until stopped.

    Attributes:
        made: topics that were acknowledged, and not deleted or tried to be since.
        deleted: topics the deletion of which was acknowledged.
        done: how many operations of each kind were acknowledged.
        failed: how many were refused, or came to no answer.
    """

    def __init__(self, cluster: BrokerCluster, seed: int) -> None:
        super().__init__(daemon=True)
        self.made: set[str] = set()
        self.deleted: set[str] = set()
        self.done: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.trouble: BaseException | None = None
        self._cluster = cluster
        self._random = random.Random(seed)
        self._numbers = itertools.count()
        self._seed = seed
        self._ended = threading.Event()

    def run(self) -> None:
        operations = (self._create, self._create, self._delete, self._reassign, self._elect)
        while not self._ended.is_set():
            operation = self._random.choice(operations)
            kind = operation.__name__.removeprefix("_")
            try:
                counter = self.done if operation() else self.failed
                counter[kind] += 1
            except OSError:
                self.failed[kind] += 1
            except BaseException as trouble:
                self.trouble = trouble
                return

    def rage(self, seconds: float) -> None:
        """Let it go on for so long, unless it ends by itself."""
        self.join(seconds)

    def has_done_enough(self) -> bool:
        """Whether something of each kind was acknowledged; it does less on a busy machine."""
        return self.done["create"] > 2 and all(self.done[each] for each in KINDS)

    def report(self) -> str:
        """What it has done, and what has ended it."""
        return f"{self.done} were done, {self.failed} failed: {self.trouble}"

    def stop(self) -> None:
        self._ended.set()
        self.join(STORM_END_SECONDS_MAX)
        assert not self.is_alive()
        if self.trouble is not None:
            raise self.trouble

    def _someone(self) -> int:
        return self._random.choice(self._cluster.running or list(BROKER_IDS))

    def _create(self) -> bool:
        name = f"storm-{self._seed}-{next(self._numbers)}"
        if create(self._cluster, self._someone(), name, (1, 2, 3), (2, 3, 1), (3, 1, 2)):
            return False
        self.made.add(name)
        return True

    def _delete(self) -> bool:
        if not self.made:
            return False
        name = self._random.choice(sorted(self.made))
        self.made.discard(name)  # whatever comes of it, it need not be there any more
        request = messages.DeleteTopicsRequest(topic_names=[name], timeout_ms=2_000)
        (result,) = self._cluster.ask(self._someone(), request, DELETE_VERSION).responses
        if result.error_code != ErrorCode.NONE:
            return False  # one that came to no controller in time was not deleted
        self.deleted.add(name)
        return True

    def _reassign(self) -> bool:
        make = messages.AlterPartitionReassignmentsRequest
        order = list(BROKER_IDS)
        self._random.shuffle(order)
        partition = make.ReassignablePartition(partition_index=0, replicas=order)
        topic = make.ReassignableTopic(name=self._steady(), partitions=[partition])
        request = make(timeout_ms=2_000, topics=[topic])
        answer = self._cluster.ask(self._someone(), request, REASSIGN_VERSION)
        return not answer.error_code and not answer.responses[0].partitions[0].error_code

    def _elect(self) -> bool:
        make = messages.ElectLeadersRequest
        topic = make.TopicPartitions(topic=self._steady(), partitions=[0, 1, 2])
        request = make(election_type=PREFERRED, topic_partitions=[topic], timeout_ms=2_000)
        answer = self._cluster.ask(self._someone(), request, ELECT_VERSION)
        return not answer.error_code

    def _steady(self) -> str:
        return f"steady-{self._random.randrange(STEADY_TOPICS)}"


def kill_controllers_in_a_storm(cluster: BrokerCluster, seed: int, kills: int) -> Counter[str]:
    """Kill controller after controller while operations run, and look after each.

    Returns:
        How many operations of each kind were acknowledged.
    """
    rng = random.Random(seed)
    for number in range(STEADY_TOPICS):
        name = f"steady-{number}"
        assert create(cluster, 1, name, (1, 2, 3), (2, 3, 1), (3, 1, 2)) == ErrorCode.NONE
    done: Counter[str] = Counter()
    made: set[str] = set()
    deleted: set[str] = set()
    for number in range(kills):
        controller = cluster.agreed().controller
        storm = Storm(cluster, seed * 1000 + number)
        storm.start()
        if number == 0:
            wait_until(storm.has_done_enough, STORM_SECONDS_MAX, storm.report)
        storm.rage(rng.uniform(*STORM_SECONDS))  # the moment is what chance decides
        cluster.brokers[controller].kill()
        storm.rage(rng.uniform(*STORM_SECONDS))
        storm.stop()
        done += storm.done
        made |= storm.made
        made -= storm.deleted
        deleted |= storm.deleted

        def is_settled(view: View, gone: int = controller) -> bool:
            return view.controller != gone and gone not in view.brokers

        without = cluster.settled(is_settled)
        require_whole(without, made)
        require_that_clients_see(cluster, without)
        assert create(cluster, without.controller, f"after-{number}", (without.controller,)) == 0
        cluster.brokers[controller].start()
        gone = frozenset(deleted)
        wait_until(lambda gone=gone: not gone & cluster.topics_in_tree())
        back = cluster.settled()
        require_whole(back, made)
        require_that_clients_see(cluster, back)
    return done


def require_whole(view: View, made: set[str]) -> None:
    """What was acknowledged is there, and leaders are brokers that are alive."""
    assert made <= view.topics.keys(), made - view.topics.keys()
    for name, partitions in view.topics.items():
        for index, partition in partitions.items():
            assert partition.leader in {*view.brokers, -1}, (name, index, partition)
            assert partition.isr <= set(partition.replicas), (name, index, partition)
            if partition.leader != -1:
                assert partition.leader in partition.isr, (name, index, partition)


def test_a_controller_killed_in_the_middle_of_its_work_is_replaced_and_all_agree(
    cluster: BrokerCluster,
) -> None:
    done = kill_controllers_in_a_storm(cluster, seed=7, kills=KILLS)
    assert done["create"] > 2, done
    assert all(done[kind] for kind in KINDS), done


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(5))
def test_many_controllers_killed(cluster: BrokerCluster, seed: int) -> None:
    kill_controllers_in_a_storm(cluster, seed, kills=25)
