"""What clients ask of the controller in its simulation."""

from __future__ import annotations

from ....common.errors import KafkaError
from ....common.topic_partition import TopicPartition
from ....controller.active_controller import ActiveController
from ....controller.partitions.leader_elections import ElectionType, LeaderElections
from ....controller.topics.planning import NewPartitions, TopicCreation
from ....controller.topics.topic_operations import TopicOperations
from ....metadata_store import znodes
from .cluster import SimulatedCluster

TOPIC_NAMES = ("a", "b", "c", "d", "e")
"""So few that they are used again."""

UNCLEAN = {"unclean.leader.election.enable": "true"}


class Clients:
    """They make, grow, move, alter and delete topics, elect leaders and shut brokers down.

    What was requested is noted for the invariants before it is done: it may be done and the
    answer lost.
    """

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    def ask(self) -> None:
        """Have some controller, or who thinks that it is one, do something."""
        controllers = [
            each for each in self._cluster.brokers if each.alive and each.active is not None
        ]
        if not controllers:
            return
        broker = self._cluster.random.choice(controllers)
        assert broker.active is not None
        names = [topic.name for topic in broker.active.context.topics()]
        dice = self._cluster.random.random()
        if dice < 0.3 or not names:
            broker.post_to_controller(self._create)
            return
        name = self._cluster.random.choice(names)
        if dice < 0.45:
            broker.post_to_controller(lambda controller: self._delete(controller, name))
        elif dice < 0.55:
            broker.post_to_controller(lambda controller: self._grow(controller, name))
        elif dice < 0.75:
            broker.post_to_controller(lambda controller: self._reassign(controller, name))
        elif dice < 0.8:
            broker.post_to_controller(self._elect_uncleanly)
        elif dice < 0.87:
            broker.post_to_controller(lambda controller: LeaderElections(controller).rebalance())
        elif dice < 0.92:
            broker.post_to_controller(lambda controller: self._allow_unclean(controller, name))
        else:
            broker.post_to_controller(self._shut_down)

    async def _create(self, controller: ActiveController) -> None:
        name = self._cluster.random.choice(TOPIC_NAMES)
        configs = list(UNCLEAN.items()) if self._cluster.random.random() < 0.2 else []
        new_topic = TopicCreation(
            name,
            self._cluster.random.randint(1, 3),
            self._cluster.random.randint(1, 3),
            configs=configs,
        )
        (created,) = await TopicOperations(controller).create([new_topic])
        if created.plan is not None:
            self._cluster.trace(f"topic {name} is made: {created.plan.assignment} {configs}")

    async def _delete(self, controller: ActiveController, name: str) -> None:
        topic = controller.context.topic(name)
        if topic is not None:
            self._cluster.invariants.to_be_deleted.add(topic.topic_id)
            self._cluster.trace(f"topic {name} is to be deleted")
            await TopicOperations(controller).delete([topic.topic_id])

    async def _grow(self, controller: ActiveController, name: str) -> None:
        topic = controller.context.topic(name)
        if topic is not None:
            count = len(topic.assignment) + 1
            await TopicOperations(controller).add_partitions([NewPartitions(name, count)])

    async def _reassign(self, controller: ActiveController, name: str) -> None:
        topic = controller.context.topic(name)
        if topic is None:
            return
        target = self._cluster.random.sample(
            range(1, len(self._cluster.brokers) + 1), self._cluster.random.randint(1, 3)
        )
        requested = self._cluster.invariants.requested_targets[topic.topic_id, 0]
        requested.append(frozenset(target))
        replicas = None if self._cluster.random.random() < 0.2 else target
        self._cluster.trace(f"{name}-0 is to move to {replicas}")
        await LeaderElections(controller).reassign({TopicPartition(name, 0): replicas})

    async def _elect_uncleanly(self, controller: ActiveController) -> None:
        for topic in controller.context.topics():
            self._cluster.invariants.elected_uncleanly.add(topic.topic_id)
        await LeaderElections(controller).elect(ElectionType.UNCLEAN, None)

    async def _allow_unclean(self, controller: ActiveController, name: str) -> None:
        topic = controller.context.topic(name)
        if topic is None:
            return
        self._cluster.trace(f"topic {name} may be led uncleanly")
        altered = znodes.encode_config(UNCLEAN)
        await controller.store.store.set(znodes.topic_config_path(name), altered)
        await controller.topic_config_changed(name)

    async def _shut_down(self, controller: ActiveController) -> None:
        leaving = self._cluster.random.randint(1, len(self._cluster.brokers))
        try:
            await LeaderElections(controller).shut_down(leaving, -1)
        except KafkaError:
            return
        self._cluster.trace(f"broker {leaving} shuts down in good order")
        self._cluster.leaving.add(leaving)
