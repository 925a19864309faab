"""Several questions to the cluster at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from ..explaining import HANDLED


async def gather(*questions: Callable[[], Awaitable[Any]]) -> list[Any]:
    """The answers, in order.

    Raises:
        What the first of them raised that did; the others are cancelled.
    """
    answers: list[Any] = [None] * len(questions)
    failures: list[Exception] = []

    async def answer(index: int, scope: trio.CancelScope) -> None:
        try:
            answers[index] = await questions[index]()
        except HANDLED as failure:
            failures.append(failure)
            scope.cancel()

    async with trio.open_nursery() as nursery:
        for index in range(len(questions)):
            nursery.start_soon(answer, index, nursery.cancel_scope)
    if failures:
        raise failures[0]
    return answers


async def gather_what_answers(*questions: Callable[[], Awaitable[Any]]) -> list[Any]:
    """The answers, in order; in place of one that failed, why."""
    answers: list[Any] = [None] * len(questions)

    async def answer(index: int) -> None:
        try:
            answers[index] = await questions[index]()
        except HANDLED as failure:
            answers[index] = failure

    async with trio.open_nursery() as nursery:
        for index in range(len(questions)):
            nursery.start_soon(answer, index)
    return answers
