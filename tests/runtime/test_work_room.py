"""Long work waits for room: by turns the first and the smallest goes on."""

from __future__ import annotations

import trio
from trio.testing import wait_all_tasks_blocked

from odradek.runtime.work_room import WorkRoom


class Bench:
    """Work by name, which is under way until `finish`."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.gone: set[str] = set()
        self.room = WorkRoom[str](100, lambda name: name not in self.gone)
        self.began: list[str] = []
        self.refused: list[str] = []
        self._nursery = nursery

    async def begin(self, **sizes: int) -> None:
        for name, size in sizes.items():
            self._nursery.start_soon(self._enter, name, size)
            await wait_all_tasks_blocked()

    async def _enter(self, name: str, size: int) -> None:
        has_room = await self.room.enter(name, size)
        (self.began if has_room else self.refused).append(name)

    async def finish(self, name: str) -> None:
        self.room.leave(name)
        await wait_all_tasks_blocked()


async def test_no_more_is_begun_than_there_is_room_for() -> None:
    async with trio.open_nursery() as nursery:
        bench = Bench(nursery)
        await bench.begin(a=60, b=40, c=1)
        assert bench.began == ["a", "b"]
        await bench.finish("b")
        assert bench.began == ["a", "b", "c"]
        assert bench.room.used_bytes == 61
        await bench.finish("b")  # again: nothing happens
        await bench.finish("a")
        await bench.finish("c")
        assert bench.room.used_bytes == 0


async def test_what_exceeds_all_room_goes_on_alone() -> None:
    async with trio.open_nursery() as nursery:
        bench = Bench(nursery)
        await bench.begin(small=1, huge=1000, later=1)
        assert bench.began == ["small"]
        await bench.finish("small")
        assert bench.began == ["small", "huge"]
        await bench.finish("huge")
        assert bench.began[2:] == ["later"]


async def test_a_small_one_waits_for_two_others_and_a_large_one_not_for_ever() -> None:
    async with trio.open_nursery() as nursery:
        bench = Bench(nursery)
        await bench.begin(**{f"large{number}": 100 for number in range(6)}, small=1)
        for done in range(3):
            await bench.finish(f"large{done}")
        assert "small" in bench.began[:3]
        await bench.finish("small")
        for number in range(50):
            await bench.begin(**{f"small{number}": 1})
        for _ in range(20):
            for name in list(bench.began):
                await bench.finish(name)
        assert {f"large{number}" for number in range(6)} <= set(bench.began)


async def test_what_is_not_wanted_any_more_waits_no_longer() -> None:
    async with trio.open_nursery() as nursery:
        bench = Bench(nursery)
        await bench.begin(a=100, b=100, c=100)
        bench.gone.add("b")
        await bench.finish("a")
        assert (bench.began, bench.refused) == (["a", "c"], ["b"])
        assert bench.room.waiting == 0


async def test_work_that_is_cancelled_leaves_its_room() -> None:
    async with trio.open_nursery() as nursery:
        bench = Bench(nursery)
        await bench.begin(a=100, b=100)
        nursery.cancel_scope.cancel()
    bench.room.leave("a")
    assert bench.room.waiting == bench.room.used_bytes == 0
