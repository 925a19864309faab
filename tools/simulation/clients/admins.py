"""Administrators: they make, grow, move, alter and delete topics, and elect leaders.

What was requested is noted for the checkers before it is sent: it may be done and the answer lost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from ....client.errors import ConnectError
from ....protocol import messages
from .client import PAUSE_MS_MAX, SimulatedClient

TOPIC_NAMES = ("a", "b", "c", "d")
"""So few that they are used again."""
PARTITIONS_MAX = 3
TIMEOUT_MS = 4_000
PREFERRED, UNCLEAN_ELECTION = 0, 1
TOPIC_RESOURCE, SET = 2, 0
UNCLEAN = "unclean.leader.election.enable"


class Admin(SimulatedClient):
    """One of them."""

    async def pause(self, ms_max: int = PAUSE_MS_MAX) -> None:
        """Wait until something is to be done."""
        await super().pause(int(ms_max * self.cluster.mix.admin_pace))

    async def act(self) -> None:
        """Do something, or nothing in peace."""
        if self.cluster.is_peace or self.cluster.log_checker.damaged:
            return  # who moves replicas then may leave only the one that has lost something
        names = sorted(self.cluster.store_checker.topic_ids())
        names = [name for name in names if not name.startswith("__")]
        (what,) = self.random.choices(list(WEIGHTS), list(WEIGHTS.values()))
        if len(names) < 2 or what is Admin.create:
            await self.create()
        else:
            await what(self, self.random.choice(names))

    async def create(self, _: str = "") -> None:
        """Make a topic."""
        count = len(self.cluster.broker_ids)
        topic = messages.CreateTopicsRequest.CreatableTopic(
            name=self.random.choice(TOPIC_NAMES),
            num_partitions=self.random.randint(1, PARTITIONS_MAX),
            replication_factor=min(self.random.choice((1, 2, 3, 3, 3)), count),
            configs=[
                messages.CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
                for name, value in self._configs().items()
            ],
        )
        self.cluster.trace(f"{self.name} makes topic {topic.name}")
        request = messages.CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
        await self.request(self.any_broker(), request)

    def _configs(self) -> Mapping[str, str]:
        configs = {"min.insync.replicas": str(self.random.choice((1, 2)))}
        if self.random.random() < 0.3:
            configs["internal.segment.bytes"] = "700"
        if self.random.random() < 0.1:
            configs[UNCLEAN] = "true"
        return configs

    async def delete(self, name: str) -> None:
        """Delete a topic, by its id."""
        topic_id = self.cluster.store_checker.topic_ids()[name]
        self.cluster.store_checker.to_be_deleted.add(topic_id)
        self.cluster.trace(f"{self.name} deletes topic {name}")
        state = messages.DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=topic_id)
        request = messages.DeleteTopicsRequest(topics=[state], timeout_ms=TIMEOUT_MS)
        await self.request(self.any_broker(), request)

    async def grow(self, name: str) -> None:
        """Add a partition."""
        count = self.cluster.store_checker.partition_count(name)
        if count > PARTITIONS_MAX:
            return
        self.cluster.trace(f"{self.name} lets topic {name} grow")
        topic = messages.CreatePartitionsRequest.CreatePartitionsTopic(
            name=name, count=count + 1, assignments=None
        )
        request = messages.CreatePartitionsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
        await self.request(self.any_broker(), request)

    async def reassign(self, name: str) -> None:
        """Move a partition, or take that back."""
        rng, ids = self.random, self.cluster.broker_ids
        partition = rng.randrange(max(self.cluster.store_checker.partition_count(name), 1))
        target = rng.sample(ids, rng.randint(1, min(len(ids), 3)))
        requested = self.cluster.store_checker.requested_targets
        requested.setdefault((name, partition), []).append(frozenset(target))
        replicas = None if rng.random() < 0.2 else target
        self.cluster.trace(f"{self.name} moves {name}-{partition} to {replicas}")
        message = messages.AlterPartitionReassignmentsRequest
        moved = message.ReassignablePartition(partition_index=partition, replicas=replicas)
        topic = message.ReassignableTopic(name=name, partitions=[moved])
        await self.request(self.any_broker(), message(topics=[topic], timeout_ms=TIMEOUT_MS))

    async def elect(self, name: str) -> None:
        """Give leaders their partitions back."""
        await self._elect(name, PREFERRED)

    async def elect_uncleanly(self, name: str) -> None:
        """Elect whoever is there."""
        self.cluster.store_checker.elected_uncleanly.add(name)
        self.cluster.trace(f"{self.name} lets topic {name} be led by anybody")
        await self._elect(name, UNCLEAN_ELECTION)

    async def _elect(self, name: str, kind: int) -> None:
        count = self.cluster.store_checker.partition_count(name)
        topic = messages.ElectLeadersRequest.TopicPartitions(
            topic=name, partitions=list(range(count))
        )
        request = messages.ElectLeadersRequest(
            election_type=kind, topic_partitions=[topic], timeout_ms=TIMEOUT_MS
        )
        await self.request(self.any_broker(), request)

    async def alter(self, name: str) -> None:
        """Change a setting."""
        setting, value = self.random.choice(
            (
                ("min.insync.replicas", "1"),
                ("min.insync.replicas", "2"),
                ("internal.segment.bytes", "700"),
            )
        )
        message = messages.IncrementalAlterConfigsRequest
        altered = message.AlterableConfig(name=setting, config_operation=SET, value=value)
        resource = message.AlterConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=name, configs=[altered]
        )
        self.cluster.trace(f"{self.name} sets {setting}={value} of topic {name}")
        await self.request(self.any_broker(), message(resources=[resource]))

    async def delete_records(self, name: str) -> None:
        """Delete the oldest records of a partition (KIP-107)."""
        await self.refresh()
        partition = self.led(lambda topic: topic == name)
        leader = self.leaders[partition]
        history = self.cluster.log_checker.history(leader.topic_id, partition)
        offset = self.random.randint(0, len(history.committed))
        self.cluster.log_checker.note_deletion(leader.topic_id, partition, offset)
        self.cluster.trace(f"{self.name} deletes records of {partition} before {offset}")
        message = messages.DeleteRecordsRequest
        deleted = message.DeleteRecordsPartition(partition_index=partition.partition, offset=offset)
        topic = message.DeleteRecordsTopic(name=name, partitions=[deleted])
        request = message(topics=[topic], timeout_ms=TIMEOUT_MS)
        if leader.broker_id < 0:
            raise ConnectError("it has no leader")
        await self.request(leader.broker_id, request)


WEIGHTS: Mapping[Callable[[Admin, str], Awaitable[None]], int] = {
    Admin.create: 20,
    Admin.delete: 8,
    Admin.grow: 8,
    Admin.reassign: 24,
    Admin.elect: 10,
    Admin.elect_uncleanly: 1,
    Admin.alter: 8,
    Admin.delete_records: 4,
}
"""How often each is done, in relation to the others."""
