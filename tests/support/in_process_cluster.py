"""Three brokers of this process, on one loop, whose requests and answers a test reaches into."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

from odradek.broker.broker import Broker
from odradek.broker.start import make_broker
from odradek.common.topic_partition import TopicPartition
from odradek.config.broker_config import BrokerConfig
from odradek.controller.controller import Controller
from odradek.controller.partitions.leader_elections import ElectionType
from odradek.controller.topics.planning import TopicCreation
from odradek.metadata.metadata_cache import MetadataSnapshot
from odradek.metadata.metadata_waiting import partitions_are_led, wait_for_metadata

SECONDS_MAX = 90
T0 = TopicPartition("t", 0)


class InProcessCluster:
    """Brokers 1, 2 and 3, which share a file of metadata; the first is the controller.

    Attributes:
        listeners: their names.
        leaves_in_order: whether brokers that stop are relieved of what they lead before.
        addresses: host and port, by broker and listener.
    """

    listeners = ("PLAINTEXT",)
    leaves_in_order = False

    def __init__(self) -> None:
        self.brokers: dict[int, Broker] = {}
        self.addresses: dict[tuple[int, str], tuple[str, int]] = {}

    @property
    def controller(self) -> Controller:
        return self.brokers[1].controller

    def bootstrap(self, broker_id: int) -> str:
        """The address of a broker's first listener."""
        return "{}:{}".format(*self.addresses[broker_id, self.listeners[0]])

    async def start(self, nursery: trio.Nursery, folder: Path) -> None:
        for broker_id in (1, 2, 3):
            settings = {
                "broker.id": str(broker_id),
                "broker.rack": f"rack-{broker_id}",
                "listeners": ",".join(f"{name}://127.0.0.1:0" for name in self.listeners),
                "listener.security.protocol.map": ",".join(
                    f"{name}:PLAINTEXT" for name in self.listeners
                ),
                "log.dirs": str(folder / f"broker-{broker_id}"),
                "metadata.log.dir": str(folder),
                "auto.create.topics.enable": "false",
                "controlled.shutdown.enable": str(self.leaves_in_order).lower(),
            }
            broker = await make_broker(BrokerConfig.from_sources({}, settings))
            self.prepare(broker)
            await nursery.start(self._run, broker)
        assert self.controller.is_active
        await self.wait_until_shown(lambda now: len(now.alive_brokers) == 3)

    async def _run(self, broker: Broker, task_status: trio.TaskStatus[None]) -> None:
        def on_ready(advertised: Any) -> None:
            for name, endpoint in zip(self.listeners, advertised, strict=True):
                host, _, port = endpoint.address.rpartition(":")
                self.addresses[broker.broker_id, name] = (host, int(port))
            self.brokers[broker.broker_id] = broker
            task_status.started()

        await broker.run(on_ready)

    def prepare(self, broker: Broker) -> None:
        """Do what a test does to a broker before it runs."""

    def informed(self) -> list[Broker]:
        """The brokers whose metadata follow the controller's."""
        return list(self.brokers.values())

    async def wait_until_shown(self, is_shown: Callable[[MetadataSnapshot], bool]) -> None:
        """Wait until the metadata of all informed brokers show something."""
        for broker in self.informed():
            assert await wait_for_metadata(broker.metadata_cache, is_shown, SECONDS_MAX * 1000)

    async def create(self, *replicas: int) -> None:
        """Topic t with one partition, known to every informed broker."""
        (created,) = await self.controller.create_topics(
            [TopicCreation("t", assignments=[(0, replicas)])]
        )
        assert created.error is None
        await self.wait_until_shown(partitions_are_led([("t", 1)]))

    async def elect(self, preferred: int) -> None:
        """Have the preferred replica lead; returns when every informed broker knows."""
        elected = await self.controller.elect_leaders(ElectionType.PREFERRED, [T0])
        assert elected == {T0: None}
        await self.wait_until_shown(lambda now: now.partition_states["t"][0].leader == preferred)
