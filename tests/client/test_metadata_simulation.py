"""A client's metadata machine under random events, by seed, without trio.

Brokers come and go, answer late, with older epochs, or not at all. Whatever happens, the
rules below hold; a seed that breaks one is in the test's name.
"""

from __future__ import annotations

from random import Random

import pytest
from support.client_parts import BACKOFF_MS, MAX_AGE_MS, Updater, answer, partition, topic
from support.selection import short

from odradek.client.metadata.metadata_updater import Ask, Connect, Rebootstrap, Wait
from odradek.client.network.node_states import ConnectionState

STEPS = 300
TOPIC_IDS = [bytes(15) + bytes([number]) for number in range(1, 40)]


class Simulation:
    """One client, and a world that does as it likes."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.parts = Updater("t")
        self.now_ms = 0
        self.asked: Ask | None = None
        self.topic_number = 0
        self.epoch = 0
        self.last_ask_ms: int | None = None
        self.newest: dict[bytes, int] = {}
        parts = self.parts
        self.events = {
            self.pass_time: 6,
            self.answer: 5,
            self.fail: 1,
            self.connect: 6,
            self.lose: 2,
            parts.metadata.request_update: 1,
            lambda: parts.updater.leader_unknown("t", self.now_ms): 1,
            self.elect: 2,
            self.create_anew: 1,
        }

    def run(self) -> None:
        events, weights = list(self.events), list(self.events.values())
        for _ in range(STEPS):
            self.random.choices(events, weights)[0]()
            self.follow()
            self.check_snapshot()

    # --- What the world does ----------------------------------------------------------------

    def pass_time(self) -> None:
        self.now_ms += self.random.choice([1, 10, 100, 1_000, 60_000])

    def elect(self) -> None:
        self.epoch += 1

    def create_anew(self) -> None:
        if self.topic_number + 1 < len(TOPIC_IDS):
            self.topic_number += 1
            self.epoch = 0

    def answer(self) -> None:
        if self.asked is None:
            return
        self.asked = None
        # Some brokers do not know yet of the last elections.
        epoch = max(self.epoch - self.random.choice([0, 0, 1, 2]), 0)
        topic_id = TOPIC_IDS[self.topic_number]
        said = topic("t", partition(0, 1 + epoch % 3, epoch), topic_id=topic_id)
        nodes = self.random.choice([(1, 2, 3), (1, 2, 3), (2, 3), ()])
        self.parts.updater.answered(answer(said, nodes=nodes), self.now_ms)

    def fail(self) -> None:
        if self.asked is not None:
            self.asked = None
            self.parts.updater.failed(self.now_ms)

    def connect(self) -> None:
        """Whatever is being connected to gets on, or does not."""
        states = self.parts.states
        for node_id in list(self.parts.metadata.cluster.nodes):
            state = states.state(node_id)
            if state is ConnectionState.CONNECTING and self.random.random() < 0.3:
                states.disconnected(node_id, self.now_ms)
                self.parts.updater.connection_failed(self.now_ms)
            elif state is ConnectionState.CONNECTING:
                states.connected(node_id)
            elif state is ConnectionState.PREPARING:
                states.ready(node_id)

    def lose(self) -> None:
        ready = [
            node_id
            for node_id in self.parts.metadata.cluster.nodes
            if self.parts.states.state(node_id) is ConnectionState.READY
        ]
        if not ready:
            return
        node_id = self.random.choice(ready)
        self.parts.states.disconnected(node_id, self.now_ms)
        self.parts.updater.connection_lost(self.now_ms)
        if self.asked is not None and self.asked.node.id == node_id:
            self.fail()

    # --- What the client does ---------------------------------------------------------------

    def follow(self) -> None:
        """Do what the updater says, until it waits."""
        states = self.parts.states
        for _ in range(10):
            step = self.parts.updater.next_step(self.now_ms)
            if isinstance(step, Wait):
                assert step.milliseconds is None or step.milliseconds > 0, "it would not wait"
                return
            if isinstance(step, Ask):
                assert self.asked is None, "two requests at a time"
                assert states.is_ready(step.node.id, self.now_ms), "not connected"
                if self.last_ask_ms is not None and self.parts.metadata.last_refresh_ms >= 0:
                    # (A topic that is new overrules the backoff; here, none is after the first.)
                    since = self.now_ms - self.parts.metadata.last_refresh_ms
                    assert since >= BACKOFF_MS, "the backoff was overruled"
                self.asked, self.last_ask_ms = step, self.now_ms
            elif isinstance(step, Connect):
                assert states.can_connect(step.node.id, self.now_ms), "it backs off"
                states.connecting(step.node.id, self.now_ms)
            elif isinstance(step, Rebootstrap):
                for node in step.nodes:
                    if states.state(node.id) is not ConnectionState.DISCONNECTED:
                        states.disconnected(node.id, self.now_ms)
                self.fail()
        raise AssertionError("it never waits")

    def check_snapshot(self) -> None:
        """Within one life of the topic, the leader epoch never goes back."""
        info = self.parts.metadata.cluster.topic("t")
        if info is None or 0 not in info.partitions:
            return
        epoch = info.partitions[0].leader_epoch
        assert epoch is not None
        assert epoch >= self.newest.get(info.topic_id, 0), "an older epoch was accepted"
        self.newest[info.topic_id] = epoch

    def settle(self) -> None:
        """From now on all goes well: the client must learn of the last election."""
        for _ in range(60):
            self.now_ms += MAX_AGE_MS // 20
            self.connect_all()
            self.follow()
            if self.asked is not None:
                self.asked = None
                topic_id = TOPIC_IDS[self.topic_number]
                said = topic("t", partition(0, 1, self.epoch), topic_id=topic_id)
                self.parts.updater.answered(answer(said, nodes=(1, 2, 3)), self.now_ms)

    def connect_all(self) -> None:
        states = self.parts.states
        for node_id in self.parts.metadata.cluster.nodes:
            if states.state(node_id) is ConnectionState.CONNECTING:
                states.connected(node_id)
            if states.state(node_id) is ConnectionState.PREPARING:
                states.ready(node_id)


def run_seed(seed: int) -> None:
    simulation = Simulation(seed)
    simulation.run()
    simulation.settle()
    known = simulation.parts.metadata.cluster.topic("t")
    assert known is not None
    assert known.topic_id == TOPIC_IDS[simulation.topic_number]
    assert known.partitions[0].leader_epoch == simulation.epoch


@pytest.mark.parametrize("seed", short(range(100), 40))
def test_the_rules_hold_whatever_happens(seed):
    run_seed(seed)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_the_rules_hold_for_very_many_seeds():
    for seed in range(100, 5_000):
        try:
            run_seed(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error
