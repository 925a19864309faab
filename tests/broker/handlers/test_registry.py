"""Each handler takes its own API's request, and its outcomes carry its own API's response."""

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from odradek.broker.handlers.registry import COORDINATORS, REGISTRATIONS
from odradek.broker.request.context import HandlerContext
from odradek.broker.request.outcomes import (
    Answer,
    AtFlush,
    Outcome,
    Parked,
    Stepwise,
    Task,
    in_steps,
    in_task,
)
from odradek.broker.request.requests import Request
from odradek.protocol import messages
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import request_message, response_message
from odradek.runtime.steps import Steps


def of_union(annotation: Any) -> tuple[Any, ...]:
    """What a union consists of; anything else is itself."""
    if get_origin(annotation) in (Answer, Task, Stepwise):
        return (annotation,)
    return get_args(annotation) or (annotation,)


def wrong_types(handler: Callable[..., Any], api_key: int) -> Iterator[str]:
    """How a handler's signature differs from what its API's has to be."""
    hints = get_type_hints(handler)
    if list(hints) != ["context", "request", "return"]:
        yield f"it has {list(hints)}"
        return
    if hints["context"] is not HandlerContext:
        yield f"context is {hints['context']}"
    if get_origin(hints["request"]) is not Request or request_message(api_key) not in of_union(
        get_args(hints["request"])[0]
    ):
        yield f"request is {hints['request']}"
    response = response_message(api_key)
    if inspect.iscoroutinefunction(inspect.unwrap(handler)):
        if hints["return"] is not response:
            yield f"its task returns {hints['return']}"
        return
    if inspect.isgeneratorfunction(inspect.unwrap(handler)):
        if set(of_union(get_args(hints["return"])[-1])) - {Parked, response}:
            yield f"its steps return {hints['return']}"
        return
    for outcome in of_union(hints["return"]):
        if outcome not in (Parked, AtFlush, Answer[response], Task[response], Stepwise[response]):
            yield f"an outcome is {outcome}"


@pytest.mark.parametrize("api_key", REGISTRATIONS, ids=lambda key: ApiKey(key).name)
def test_a_handler_has_the_types_of_its_api(api_key: int) -> None:
    assert list(wrong_types(REGISTRATIONS[api_key].load(), api_key)) == []


def test_wrong_types_are_found() -> None:
    def untyped_request(context: HandlerContext, request: Request) -> Parked: ...

    def other_request(
        context: HandlerContext, request: Request[messages.SyncGroupRequest]
    ) -> Outcome[messages.SyncGroupResponse]: ...

    def bare_response(
        context: HandlerContext, request: Request[messages.HeartbeatRequest]
    ) -> messages.HeartbeatResponse | Parked: ...

    @in_task
    async def other_response(
        context: HandlerContext, request: Request[messages.HeartbeatRequest]
    ) -> messages.SyncGroupResponse: ...

    @in_steps
    def other_steps(
        context: HandlerContext, request: Request[messages.HeartbeatRequest]
    ) -> Steps[messages.SyncGroupResponse | Parked]:
        yield
        return messages.SyncGroupResponse()

    problems = {
        handler: list(wrong_types(handler, ApiKey.HEARTBEAT))
        for handler in (untyped_request, other_request, bare_response, other_response, other_steps)
    }
    assert [len(found) for found in problems.values()] == [1, 4, 1, 1, 1], problems


ATTRIBUTES = {
    "group": "coordinator.group.factory",
    "transaction": "coordinator.transaction.factory",
    "share_partitions": "broker.share.share_partition_manager",
}
"""Of `BrokerCoordinators`, what each imports when it is first needed."""
BETWEEN_BROKERS = {ApiKey.UPDATE_METADATA}


@pytest.mark.parametrize("api_key", sorted(REGISTRATIONS.keys() - BETWEEN_BROKERS))
def test_the_coordinator_that_a_handler_asks_is_imported_with_it(api_key: int) -> None:
    module = inspect.getmodule(REGISTRATIONS[api_key].load())
    assert module is not None
    source = inspect.getsource(module)
    asked = {
        ATTRIBUTES[name]
        for name in re.findall(r"coordinators\.(\w+)", source)
        if name in ATTRIBUTES
    }
    if asked:
        assert COORDINATORS[ApiKey(api_key)] in asked
        assert f"odradek.{COORDINATORS[ApiKey(api_key)]}" in sys.modules
