"""A request for the controller that came to the controller itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio

from odradek.broker.interbroker.forwarding import ANSWER_GRACE_MS, ask_controller
from odradek.common.errors import ErrorCode, KafkaError
from odradek.protocol.messages.create_topics import CreateTopicsRequest

TIMEOUT_MS = 1_000

CONTROLLER = cast("Any", SimpleNamespace(controller=SimpleNamespace(is_active=True)))
"""As much of a handler's context as is used where this broker is the controller."""


async def ask(here: Any) -> Any:
    return await ask_controller(CONTROLLER, CreateTopicsRequest(), 7, TIMEOUT_MS, here)


async def test_an_operation_that_has_begun_is_not_ended_by_the_time_out(
    autojump_clock: trio.abc.Clock,
) -> None:
    async def here() -> str:
        await trio.sleep(10 * (TIMEOUT_MS + ANSWER_GRACE_MS) / 1000)
        return "done"

    assert await ask(here) == "done"


async def test_a_broker_that_is_the_controller_no_more_is_not_asked_for_ever(
    autojump_clock: trio.abc.Clock,
) -> None:
    async def here() -> None:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)

    began = trio.current_time()
    with pytest.raises(KafkaError) as refusal:
        await ask(here)
    assert refusal.value.code is ErrorCode.REQUEST_TIMED_OUT
    seconds = trio.current_time() - began
    assert TIMEOUT_MS / 1000 <= seconds <= (TIMEOUT_MS + ANSWER_GRACE_MS) / 1000 + 0.001
