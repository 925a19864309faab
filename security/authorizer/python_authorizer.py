"""An authorizer that is somebody's own, found by the name of its entry point.

[project.entry-points."odradek.authorizers"]
opening-hours = "shop.rights:OpeningHours"

authorizer.class.name=opening-hours
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Final, Protocol

from ...runtime.steps import Steps
from .acl_authorizer import Decision

ENTRY_POINTS: Final = "odradek.authorizers"


class Authorizer(Protocol):
    """What such an entry point makes, given the broker's settings by Kafka's names, as text."""

    def authorize(
        self, principal: str, host: str, operation: str, resource_type: str, name: str
    ) -> bool:
        """Whether a principal may do something; it is called in the broker's one loop, for each
        request and resource, and must not wait.

        Args:
            principal: such as "User:alice".
            host: the address that it comes from.
            operation: Kafka's name of it, such as "WRITE" (AclOperation).
            resource_type: such as "TOPIC" (ResourceType).
            name: of the resource.
        """


class PythonAuthorizer:
    """Decides as an `Authorizer` does.

    Args:
        name: of its entry point, for the audit log.
        authorizer: decides; what it raises refuses the request, and is logged.
    """

    def __init__(self, name: str, authorizer: Authorizer) -> None:
        self._name = name
        self._authorizer = authorizer

    def decide(
        self, principal: str, host: str, operation: str, resource_type: str, name: str
    ) -> Decision:
        """Whether a principal may do something; see `Authorizer`."""
        allowed = self._authorizer.authorize(principal, host, operation, resource_type, name)
        return Decision(allowed is True, self._name)

    def may_somewhere(
        self, principal: str, host: str, operation: str, resource_type: str
    ) -> Steps[bool]:
        """Nobody knows: an idempotent producer needs IDEMPOTENT_WRITE on the cluster."""
        yield from ()
        return False


def find_authorizer(name: str, settings: Mapping[str, str]) -> PythonAuthorizer:
    """The authorizer of an entry point.

    Args:
        name: of the entry point.
        settings: that it is made with.

    Raises:
        ValueError: there is none, or it cannot be made; the text says why.
    """
    found = entry_points(group=ENTRY_POINTS, name=name)
    if not found:
        raise ValueError(f"no package that is installed has it among its {ENTRY_POINTS}")
    try:
        make: Callable[[Mapping[str, str]], Authorizer] = next(iter(found)).load()
        authorizer = make(settings)
    except Exception as error:  # it is somebody's own
        raise ValueError(f"it failed with {type(error).__name__}: {error}") from error
    if not callable(getattr(authorizer, "authorize", None)):
        raise ValueError("what it makes has no method `authorize`")
    return PythonAuthorizer(name, authorizer)
