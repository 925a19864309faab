"""Long work goes on by turns: the first, and what has had the fewest steps."""

from __future__ import annotations

import pytest
import trio

from odradek.runtime.steps import ITEMS_AT_LEAST, Steps
from odradek.runtime.work_turns import WorkTurns


class Bench:
    """Work by name, of which each step is noted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, steps_max: int) -> None:
        monkeypatch.setattr("odradek.runtime.long_work.STEP_SECONDS", 0.0)
        self.turns = WorkTurns(steps_max)
        self.begun: list[str] = []
        self.gone: set[str] = set()
        self.taken: list[str] = []
        self.most = 0
        self.closed: list[str] = []

    def _work(self, name: str, steps: int) -> Steps[None]:
        try:
            for _ in range(steps):
                self.taken.append(name)
                self.most = max(self.most, self.turns.steps)
                for _ in range(ITEMS_AT_LEAST):
                    yield
        except GeneratorExit:
            self.closed.append(name)
            raise

    async def run(self, name: str, steps: int, *, is_urgent: bool = False) -> None:
        self.begun.append(name)
        work = self._work(name, steps)
        await self.turns.run(work, lambda: name not in self.gone, is_urgent=is_urgent)

    async def taken_so_many(self, steps: int) -> None:
        """Until the works have had so many steps together."""
        while len(self.taken) < steps:
            await trio.lowlevel.checkpoint()

    def ends(self) -> list[str]:
        """The names, in the order of their last steps."""
        return list(dict.fromkeys(reversed(self.taken)))[::-1]


async def test_all_come_to_their_end_and_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, 1000)
    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(bench.run, str(number), number)
    assert {name: bench.taken.count(name) for name in bench.ends()} == {
        str(number): number for number in range(1, 20)
    }
    assert (len(bench.turns), bench.turns.steps) == (0, 0)


async def test_a_short_one_is_done_before_those_that_began_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(monkeypatch, 10_000)
    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(bench.run, f"long {number}", 100)
        await bench.taken_so_many(200)
        nursery.start_soon(bench.run, "short", 5)
    first, last = bench.taken.index("short"), len(bench.taken) - bench.taken[::-1].index("short")
    assert last - first <= 2 * 5


async def test_with_many_steps_under_way_only_the_first_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(monkeypatch, 30)
    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(bench.run, f"{number:02}", 40)
    # The first may have had all its steps, and others as many as let nobody else go on.
    assert bench.most <= 30 + 40
    assert bench.ends() == bench.begun


async def test_what_is_urgent_comes_before_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, 5)
    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(bench.run, str(number), 20)
        await bench.taken_so_many(20)
        assert bench.turns.steps >= 5
        began = len(bench.taken)
        nursery.start_soon(lambda: bench.run("urgent", 10, is_urgent=True))
    last = len(bench.taken) - bench.taken[::-1].index("urgent")
    assert last - began <= 10 + 2  # one other had its turn, and one was called


async def test_what_is_not_wanted_or_broken_off_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(monkeypatch, 5)
    async with trio.open_nursery() as nursery:
        async with trio.open_nursery() as broken_off:
            for number in range(5):
                broken_off.start_soon(bench.run, f"broken off {number}", 10_000)
            await bench.taken_so_many(20)
            nursery.start_soon(bench.run, "left", 10_000)
            nursery.start_soon(bench.run, "kept", 10)
            await trio.lowlevel.checkpoint()
            broken_off.cancel_scope.cancel()
        while "left" not in bench.taken:
            await trio.lowlevel.checkpoint()
        bench.gone.add("left")
    assert bench.taken.count("kept") == 10
    assert "left" in bench.closed
    assert (len(bench.turns), bench.turns.steps) == (0, 0)


async def test_one_that_fails_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, 5)

    def fails() -> Steps[None]:
        for _ in range(ITEMS_AT_LEAST + 1):
            yield
        raise ValueError("it fails")

    async def fail() -> None:
        with pytest.raises(ValueError, match="it fails"):
            await bench.turns.run(fails(), lambda: True)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(fail)
        nursery.start_soon(bench.run, "other", 10)
    assert bench.taken == ["other"] * 10
    assert (len(bench.turns), bench.turns.steps) == (0, 0)
