"""What a handler may say of a request: the outcomes are five, and there are no others.

`Dispatcher` matches on them, and mypy holds that it misses none. They know neither requests
nor handlers, so that the registry of handlers may name them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Final, Generic, ParamSpec, TypeAlias, TypeVar, final

if TYPE_CHECKING:
    from ...protocol.codec.message import Message
    from ...runtime.steps import Steps

ParametersT = ParamSpec("ParametersT")
ResponseT = TypeVar("ResponseT", bound="Message")
ResponseT_co = TypeVar("ResponseT_co", bound="Message", covariant=True)


@final
@dataclass(slots=True, eq=False)
class Answer(Generic[ResponseT_co]):
    """The request is answered now, by this response.

    It is not frozen: setting a frozen field costs a call more, and each answer is made once.
    """

    response: ResponseT_co


@final
class Parked:
    """The handler keeps the request and answers it later, or has answered it already.

    The connection's next requests wait until it is answered.
    """

    __slots__ = ()


@final
class AtFlush:
    """The flush at the end of this pass answers, so that the connection's next requests need
    not wait."""

    __slots__ = ()


@final
@dataclass(slots=True, eq=False)
class Task(Generic[ResponseT_co]):
    """The request is answered by a task of its own; the connection's next requests wait.

    Attributes:
        work: awaited in the task. It gives the response, or `PARKED` where something else
            answers the request.
    """

    work: Awaitable[ResponseT_co | Parked]


@final
@dataclass(slots=True, eq=False)
class Stepwise(Generic[ResponseT_co]):
    """The request is answered when some work is done, which yields after each of its items.

    What takes no longer than a step is answered at once. Else the connection's next requests wait,
    and the steps have their turns among the other requests. Between two anything may change.

    Attributes:
        work: it returns the response, or `PARKED` where something else answers the request.
    """

    work: Steps[ResponseT_co | Parked]


PARKED: Final = Parked()
AT_FLUSH: Final = AtFlush()

Outcome: TypeAlias = (
    Answer[ResponseT_co] | AtFlush | Parked | Task[ResponseT_co] | Stepwise[ResponseT_co]
)


def in_task(
    work: Callable[ParametersT, Awaitable[ResponseT]],
) -> Callable[ParametersT, Task[ResponseT]]:
    """Make a handler of an async function: each request is answered by a task of its own."""

    @wraps(work)
    def start(*args: ParametersT.args, **kwargs: ParametersT.kwargs) -> Task[ResponseT]:
        return Task(work(*args, **kwargs))

    return start


def in_steps(
    work: Callable[ParametersT, Steps[ResponseT | Parked]],
) -> Callable[ParametersT, Stepwise[ResponseT]]:
    """Make a handler of a generator function that yields after each item of its work.

    For every API whose work grows with its request or with what the broker holds: nobody waits for
    more than a step of it.
    """

    @wraps(work)
    def start(*args: ParametersT.args, **kwargs: ParametersT.kwargs) -> Stepwise[ResponseT]:
        return Stepwise(work(*args, **kwargs))

    return start
