"""Waiting until this broker's metadata shows what the controller did (article 001)."""

from __future__ import annotations

import trio
import trio.testing

from odradek.common.live_broker import LiveBroker
from odradek.common.partition_state import LEADER_DURING_DELETE, PartitionState
from odradek.common.sentinels import NO_LEADER
from odradek.metadata.metadata_cache import MetadataCache, MetadataUpdate
from odradek.metadata.metadata_waiting import partitions_are_led, topics_are_gone, wait_for_metadata


def tell(cache: MetadataCache, *leaders: int) -> None:
    """The partitions of a topic, by their leaders."""
    states = [
        PartitionState("orders", bytes(range(16)), partition, 1, leader, 0, (1,), 0, (1,))
        for partition, leader in enumerate(leaders)
    ]
    cache.update_metadata(MetadataUpdate(1, 1, [LiveBroker(1, ())], states))


async def test_who_waits_goes_on_when_an_update_shows_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    cache = MetadataCache(1)
    shown: list[bool] = []

    async def wait() -> None:
        shown.append(await wait_for_metadata(cache, partitions_are_led([("orders", 2)]), 1000))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        for leaders in [(1,), (1, NO_LEADER), (1, 1)]:
            await trio.testing.wait_all_tasks_blocked()
            assert shown == []
            tell(cache, *leaders)
    assert shown == [True]
    assert cache.listeners == []
    assert trio.current_time() < 1


async def test_who_waits_in_vain_is_told_so(autojump_clock: trio.testing.MockClock) -> None:
    cache = MetadataCache(1)
    tell(cache, 1)
    began = trio.current_time()
    assert not await wait_for_metadata(cache, topics_are_gone(["orders"]), 1000)
    assert trio.current_time() - began == 1
    tell(cache, LEADER_DURING_DELETE)
    assert await wait_for_metadata(cache, topics_are_gone(["orders"]), 1000)
