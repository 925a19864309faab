"""Waiting until this broker's metadata shows what the controller did (article 001)."""

from __future__ import annotations

from typing import Any

import trio
import trio.testing

from odradek.common.live_broker import LiveBroker
from odradek.common.partition_state import LEADER_DURING_DELETE, PartitionState
from odradek.common.sentinels import NO_LEADER
from odradek.metadata.metadata_cache import EMPTY_SNAPSHOT, MetadataCache, MetadataUpdate
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


async def test_who_waits_in_vain_learns_so(autojump_clock: trio.testing.MockClock) -> None:
    cache = MetadataCache(1)
    tell(cache, 1)
    began = trio.current_time()
    assert not await wait_for_metadata(cache, topics_are_gone(["orders"]), 1000)
    assert trio.current_time() - began == 1
    tell(cache, LEADER_DURING_DELETE)
    assert await wait_for_metadata(cache, topics_are_gone(["orders"]), 1000)


class CountedLookups(dict[str, Any]):
    """By topic, as a snapshot has it; counts what is looked up."""

    count = 0

    def get(self, *arguments: Any) -> Any:
        CountedLookups.count += 1
        return super().get(*arguments)


def test_what_was_missing_last_is_looked_for_first() -> None:
    state = PartitionState("t", bytes(16), 0, 1, 1, 0, (1,), 0, (1,))
    names = [f"t{number}" for number in range(300)]
    are_led = partitions_are_led((name, 1) for name in names)
    CountedLookups.count = 0
    for led in range(len(names) + 1):
        states = CountedLookups({name: {0: state} for name in names[:led]})
        is_whole = are_led(EMPTY_SNAPSHOT._replace(partition_states=states))
        assert is_whole is (led == len(names))
    assert CountedLookups.count <= 4 * len(names)
    # A snapshot that lacks what another had does not show it, as of another broker.
    assert not are_led(EMPTY_SNAPSHOT._replace(partition_states={names[-1]: {0: state}}))
