"""What can be asked over the control channel, and which module does it.

A verb is named `group.word`. The public functions of its group's module are its words; the module
is imported when the first of them is called, so that a broker that is only used is as quick to
start as one without a control channel.

    def add(target: Controlled, fault: Mapping[str, Any], owner: str = "") -> Any: ...

A function, plain or async, returns what JSON can say (and bytes), and runs on the broker's loop:
what it stages and answers goes out when it returns. `VerbError`, `ValueError` and `TimeoutError`
come back to the caller as a `ControlError` with their sentence; any other exception is logged
with its traceback, and comes back as one, too. An async verb is cancelled when its caller leaves.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...broker.broker import Broker
    from ...runtime.clock import Clock
    from .hooks import RequestHooks

MODULES = {
    "control": "odradek.testing.control.channel_verbs",
    "disk": "odradek.testing.outages.disk_verbs",
    "faults": "odradek.testing.faults.verbs",
    "groups": "odradek.testing.outages.group_verbs",
    "links": "odradek.testing.outages.link_verbs",
    "look": "odradek.testing.inspection.look_verbs",
    "partitions": "odradek.testing.outages.partition_verbs",
    "requests": "odradek.testing.inspection.request_verbs",
    "session": "odradek.testing.outages.session_verbs",
    "time": "odradek.testing.outages.time_verbs",
    "topics": "odradek.testing.inspection.topic_verbs",
    "transactions": "odradek.testing.outages.transaction_verbs",
}
"""The module of each group of verbs."""


class VerbError(Exception):
    """What was asked cannot be done; the text is a sentence for the caller."""


class Controlled:
    """The broker that a control channel reaches, for verbs.

    Args:
        broker: the product's broker.
        hooks: its requests and answers.

    Attributes:
        kept: what verbs keep from one call to the next, by the name of their group.
    """

    def __init__(self, broker: Broker, hooks: RequestHooks) -> None:
        self.broker = broker
        self.hooks = hooks
        self.kept: dict[str, Any] = {}

    @property
    def clock(self) -> Clock:
        """The broker's time."""
        return self.broker.clock

    def start_task(self, function: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        """Run an async function on the broker's loop, until the broker ends."""
        self.broker.start_task(function, *arguments)


def find_verb(name: str) -> Callable[..., Any]:
    """The function of a verb; it takes the `Controlled` and the verb's arguments by name.

    Raises:
        VerbError: there is none of this name.
    """
    group, _, word = name.partition(".")
    path = MODULES.get(group)
    if path is None:
        known = ", ".join(sorted(MODULES))
        raise VerbError(f"{name!r} is nothing to ask of a broker: the groups are {known}")
    words = _words(path)
    if word not in words:
        known = ", ".join(sorted(words))
        raise VerbError(f"{name!r} is nothing to ask of a broker: {group} has {known}")
    return words[word]


def _words(path: str) -> dict[str, FunctionType]:
    """The public functions that a module itself defines."""
    module = import_module(path)
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, FunctionType)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    }
