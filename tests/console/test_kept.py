"""Answers that are kept: who waits, for how long, and what is shown meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from odradek.client.network.trio_clock import TrioClock
from odradek.common.errors import ErrorCode, KafkaError
from odradek.console.cluster.kept import KEPT_MS_MAX, Kept

FRESH_MS = 2_000


class Source:
    """Answers with how often it was asked, after some time."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.asked = 0
        self.seconds = seconds
        self.failure: Exception | None = None

    async def read(self) -> int:
        self.asked += 1
        number = self.asked
        with trio.move_on_after(self.seconds):
            await trio.sleep_forever()
        if self.failure is not None:
            raise self.failure
        return number


async def run(source: Source, act: Callable[[Kept[int]], Awaitable[None]]) -> None:
    async with trio.open_nursery() as nursery:
        await act(Kept(nursery, TrioClock(), source.read, FRESH_MS))


async def test_fresh_answer_is_shown_again(autojump_clock: trio.testing.MockClock) -> None:
    source = Source(1.0)

    async def act(kept: Kept[int]) -> None:
        assert await kept.get() == 1
        await trio.sleep(FRESH_MS / 1000)
        assert await kept.get() == 1

    await run(source, act)
    assert source.asked == 1


async def test_all_who_wait_share_an_answer(autojump_clock: trio.testing.MockClock) -> None:
    source = Source(1.0)
    got: list[int] = []

    async def act(kept: Kept[int]) -> None:
        async def look() -> None:
            got.append(await kept.get())

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(look)

    await run(source, act)
    assert got == [1] * 5


async def test_old_answer_is_shown_when_the_new_one_takes_long(
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = Source(0.0)

    async def act(kept: Kept[int]) -> None:
        assert await kept.get() == 1
        await trio.sleep(3)
        assert await kept.get() == 2  # it took no time
        source.seconds = 5.0
        await trio.sleep(3)
        before = trio.current_time()
        assert await kept.get() == 2
        assert trio.current_time() - before < 0.1
        await trio.sleep(5)
        assert await kept.get() == 3

    await run(source, act)


async def test_very_old_answer_is_not_shown(autojump_clock: trio.testing.MockClock) -> None:
    source = Source(5.0)

    async def act(kept: Kept[int]) -> None:
        assert await kept.get() == 1
        await trio.sleep(KEPT_MS_MAX / 1000 + 1)
        assert await kept.get() == 2

    await run(source, act)


async def test_after_a_change_nothing_older_is_shown(
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = Source(1.0)

    async def act(kept: Kept[int]) -> None:
        assert await kept.get() == 1
        kept.forget()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(kept.get)
            await trio.sleep(0.5)
            kept.forget()  # what is being read may be from before
            assert await kept.get() == 3

    await run(source, act)


async def test_failure_is_raised_and_the_next_look_asks_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = Source()

    async def act(kept: Kept[int]) -> None:
        assert await kept.get() == 1
        source.failure = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "no")
        await trio.sleep(3)
        for _ in range(2):
            with pytest.raises(KafkaError):
                await kept.get()
        source.failure = None
        assert await kept.get() == 4

    await run(source, act)


async def test_answer_stays_young_while_pages_are_looked_at_and_no_longer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = Source(1.0)
    warm_ms = 6 * KEPT_MS_MAX
    async with trio.open_nursery() as nursery:
        kept = Kept(nursery, TrioClock(), source.read, FRESH_MS, warm_ms)
        assert await kept.get() == 1
        await trio.sleep(5 * KEPT_MS_MAX / 1000)
        began = trio.current_time()
        assert await kept.get() >= 5
        assert trio.current_time() - began < source.seconds
        await trio.sleep(2 * warm_ms / 1000)
        asked = source.asked
        await trio.sleep(10 * warm_ms / 1000)
        assert source.asked == asked
