"""A broker that stops in good order: when its port closes, the others have forgotten it."""

from pathlib import Path

import pytest
import trio
from support.in_process_cluster import InProcessCluster

from odradek.broker.broker import Broker
from odradek.metadata_store.errors import StoreUnreachable

pytestmark = pytest.mark.short


class LeavingCluster(InProcessCluster):
    """Notes what the others would tell clients when a broker closes its port.

    Attributes:
        named: by the broker that stops: who else still names it, and as what.
    """

    leaves_in_order = True

    def __init__(self) -> None:
        super().__init__()
        self.named: dict[int, list[tuple[int, str]]] = {}
        self.scopes: dict[int, trio.CancelScope] = {}
        self.ended: dict[int, trio.Event] = {}

    def prepare(self, broker: Broker) -> None:
        stop_accepting = broker.server.stop_accepting

        def note_and_stop() -> None:
            self.named.setdefault(broker.broker_id, self.who_names(broker.broker_id))
            stop_accepting()

        broker.server.stop_accepting = note_and_stop  # type: ignore[method-assign]  # a probe

    def who_names(self, broker_id: int) -> list[tuple[int, str]]:
        found = []
        for other in self.brokers.values():
            now = other.metadata_cache.snapshot
            if other.broker_id == broker_id or other.broker_id in self.named:
                continue
            if broker_id in now.alive_brokers:
                found.append((other.broker_id, "alive"))
            states = [state for each in now.partition_states.values() for state in each.values()]
            if any(state.leader == broker_id for state in states):
                found.append((other.broker_id, "leader"))
        return found

    async def _run(self, broker: Broker, task_status: trio.TaskStatus[None]) -> None:
        self.ended[broker.broker_id] = trio.Event()
        with trio.CancelScope() as self.scopes[broker.broker_id]:
            await super()._run(broker, task_status)
        self.ended[broker.broker_id].set()

    async def stop(self, broker_id: int) -> None:
        self.scopes[broker_id].cancel()
        with trio.fail_after(60):
            await self.ended[broker_id].wait()


@pytest.mark.parametrize("broker_id", [1, 2], ids=["the controller", "another"])
async def test_nobody_names_a_broker_whose_port_is_closed(
    tmp_path: Path, nursery: trio.Nursery, broker_id: int
) -> None:
    cluster = LeavingCluster()
    await cluster.start(nursery, tmp_path)
    await cluster.create(broker_id, 3)
    await cluster.stop(broker_id)
    assert cluster.named == {broker_id: []}
    nursery.cancel_scope.cancel()


async def test_a_controller_that_loses_the_metadata_store_as_it_stops_ends_all_the_same(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = LeavingCluster()
    await cluster.start(nursery, tmp_path)
    await cluster.create(1, 3)
    asked = []

    async def lose_the_store(broker_id: int, broker_epoch: int) -> object:
        asked.append(broker_id)
        raise StoreUnreachable("/brokers/topics/t", "its disk is gone")

    monkeypatch.setattr(cluster.controller, "shut_down_broker", lose_the_store)
    await cluster.stop(1)
    assert set(asked) == {1}
    nursery.cancel_scope.cancel()
