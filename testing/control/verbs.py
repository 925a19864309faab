"""Verbs: what a test can have a broker do over the control channel.

A verb is a function that runs in the broker's process. It is written once:

    @verb
    def force_rebalance(target: ControlTarget, group: str) -> None: ...

and a test calls it with the same arguments, which type checkers know, in one of two ways: as a
method of a class that has a control channel and names the verb among its attributes, or on a
channel.

    class BrokerOutages(HasControl):
        force_rebalance = coordinators.force_rebalance

    coordinators.force_rebalance.on(broker.control())("shippers")

A verb is plain or async and runs on the broker's loop: what it stages and answers goes out when
it returns. Its arguments and its result are what JSON can say, bytes, and named tuples,
dataclasses and collections of those; they arrive as what the annotations say. `VerbError`,
`ValueError` and `TimeoutError` come back to the caller as a `ControlError` with their sentence;
any other exception is logged with its traceback, and comes back as one, too. An async verb is
cancelled when its caller leaves.

The modules of verbs are imported by tests as well, and by a broker when the first verb of one is
called. So they import what belongs to the broker inside of functions.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from functools import cached_property
from importlib import import_module
from types import SimpleNamespace
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypeVar,
    cast,
    get_type_hints,
    overload,
)

from .framing import VerbError, from_wire, to_wire

if TYPE_CHECKING:
    from .client import ControlClient
    from .target import ControlTarget

P = ParamSpec("P")
R = TypeVar("R")

MODULES = {
    "access": "odradek.testing.security.access",
    "clock": "odradek.testing.outages.clock",
    "connections": "odradek.testing.outages.connections",
    "control": "odradek.testing.control.verbs",
    "coordinators": "odradek.testing.outages.coordinators",
    "disks": "odradek.testing.outages.disks",
    "faults": "odradek.testing.faults.broker_faults",
    "replicas": "odradek.testing.outages.replicas",
    "requests": "odradek.testing.inspection.requests",
    "state": "odradek.testing.inspection.broker_state",
    "topics": "odradek.testing.inspection.topic_admin",
}
"""The module of each group of verbs."""
GROUPS = {module: group for group, module in MODULES.items()}


class HasControl(ABC):
    """Whatever has a control channel. Its verbs raise ControlError, with the reason."""

    @abstractmethod
    def control(self) -> ControlClient:
        """The control channel of the running broker.

        Raises:
            ControlError: it has none, or is not running; the sentence says which.
        """


class Verb(Generic[P, R]):
    """A function of the broker's process that tests call; see `verb`.

    Attributes:
        name: "group.function", as it goes over the channel.
        function: takes the `ControlTarget` first.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = f"{GROUPS[function.__module__]}.{function.__name__}"
        self.function = function
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: HasControl, kind: type | None = None) -> Callable[P, R]: ...
    def __get__(self, owner: HasControl | None, kind: type | None = None) -> Any:
        if owner is None:
            return self

        def method(*values: P.args, **named: P.kwargs) -> R:
            __tracebackhide__ = True  # pytest shows the test's line, not ours
            return self.on(owner.control())(*values, **named)

        method.__doc__ = self.__doc__
        return method

    def on(self, control: ControlClient, answer_within: float | None = None) -> Callable[P, R]:
        """The verb as a function for tests.

        Args:
            control: the channel of the broker that is to carry it out.
            answer_within: seconds to wait for the answer; None: as long as `ControlClient.call`
                waits, after the seconds that an argument `timeout` allows.
        """

        def call(*values: P.args, **named: P.kwargs) -> R:
            __tracebackhide__ = True
            arguments = dict(zip(self._parameters, values, strict=False)) | named
            within = {} if answer_within is None else {"answer_within": answer_within}
            answer = control.call(self.name, **within, **to_wire(arguments))
            return cast("R", from_wire(answer, self._hints["return"]))

        return call

    def carry_out(self, target: ControlTarget, arguments: dict[str, Any]) -> Any:
        """Call the function, in the broker's process; returns its result or its coroutine."""
        given = {
            name: from_wire(value, self._hints.get(name, Any)) for name, value in arguments.items()
        }
        return self.function(target, **given)

    @property
    def _parameters(self) -> tuple[str, ...]:
        code = self.function.__code__
        return code.co_varnames[1 : code.co_argcount]

    @cached_property
    def _hints(self) -> dict[str, Any]:
        target, *_ = self.function.__code__.co_varnames
        annotations = dict(self.function.__annotations__)
        del annotations[target]  # of a class that only the broker's process imports
        return get_type_hints(
            SimpleNamespace(__annotations__=annotations), self.function.__globals__
        )


@overload
def verb(function: Callable[Concatenate[ControlTarget, P], Awaitable[R]]) -> Verb[P, R]: ...
@overload
def verb(function: Callable[Concatenate[ControlTarget, P], R]) -> Verb[P, R]: ...
def verb(function: Callable[..., Any]) -> Verb[..., Any]:
    """Let tests call a function of the broker's process; its module is one of `MODULES`."""
    return Verb(function)


def find_verb(name: str) -> Verb[..., Any]:
    """The verb of a name, such as "faults.add".

    Raises:
        VerbError: there is none of this name.
    """
    group, _, word = name.partition(".")
    path = MODULES.get(group)
    if path is None:
        known = ", ".join(sorted(MODULES))
        raise VerbError(f"unknown verb {name!r}: the groups are {known}")
    verbs = {
        key: value for key, value in vars(import_module(path)).items() if isinstance(value, Verb)
    }
    if word not in verbs:
        known = ", ".join(sorted(verbs))
        raise VerbError(f"unknown verb {name!r}: {group} has {known}")
    return verbs[word]


@verb
def ping(target: ControlTarget, /, **arguments: Any) -> dict[str, Any]:
    """Whether the channel works: the broker's id and process, and what the call gave."""
    return {"broker_id": target.broker.broker_id, "pid": os.getpid(), "given": arguments}
