"""A request for the controller that came to the controller itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio

from odradek.broker.interbroker.forwarding import ANSWER_GRACE_MS, ask_controller
from odradek.common.errors import ErrorCode, KafkaError
from odradek.protocol.messages.create_topics import CreateTopicsRequest

TIMEOUT_MS = 1_000
SECONDS_MAX = (TIMEOUT_MS + ANSWER_GRACE_MS) / 1000


async def ask(nursery: trio.Nursery, here: Callable[[], Awaitable[object]]) -> object:
    """The answer, where as much of a handler's context is there as is used on the controller."""
    controller = SimpleNamespace(is_active=True)
    context = SimpleNamespace(controller=controller, start_task=nursery.start_soon)
    return await ask_controller(
        cast("Any", context), CreateTopicsRequest(), 7, TIMEOUT_MS, cast("Any", here)
    )


async def test_an_operation_that_has_begun_goes_to_its_end_though_its_time_is_over(
    autojump_clock: trio.abc.Clock, nursery: trio.Nursery
) -> None:
    ended = trio.Event()

    async def here() -> None:
        await trio.sleep(10 * SECONDS_MAX)
        ended.set()

    began = trio.current_time()
    with pytest.raises(KafkaError) as refusal:
        await ask(nursery, here)
    assert refusal.value.code is ErrorCode.REQUEST_TIMED_OUT
    assert trio.current_time() - began == pytest.approx(SECONDS_MAX, abs=0.01)
    await ended.wait()


async def test_what_the_operation_gives_or_raises_is_the_answer(
    autojump_clock: trio.abc.Clock, nursery: trio.Nursery
) -> None:
    async def gives() -> str:
        await trio.sleep(SECONDS_MAX / 2)
        return "done"

    async def raises() -> None:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)

    assert await ask(nursery, gives) == "done"
    with pytest.raises(KafkaError) as refusal:
        await ask(nursery, raises)
    assert refusal.value.code is ErrorCode.POLICY_VIOLATION


async def test_a_broker_that_is_the_controller_no_more_is_not_tried_for_ever(
    autojump_clock: trio.abc.Clock, nursery: trio.Nursery
) -> None:
    async def here() -> None:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)

    began = trio.current_time()
    with pytest.raises(KafkaError) as refusal:
        await ask(nursery, here)
    assert refusal.value.code is ErrorCode.REQUEST_TIMED_OUT
    assert TIMEOUT_MS / 1000 <= trio.current_time() - began <= SECONDS_MAX + 0.01
