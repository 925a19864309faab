"""A fault that was added to a broker: what it matches, and how often it struck."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...broker.handlers.registry import REGISTRATIONS
from ...protocol.api_keys import ApiKey
from ..control.request_names import RequestNames, nameable
from .broker_faults import FaultStatus
from .fault import Fault
from .matcher import VERSION_MAX, Match
from .triggers import TriggerState

if TYPE_CHECKING:
    from ...broker.request.requests import Request


class ActiveFault:
    """One fault of a broker.

    Args:
        number: by which it is known.
        fault: what it is.
        owner: who added it.

    Attributes:
        strikes: how often it struck.
        is_lifted: whether it is over.
    """

    def __init__(self, number: int, fault: Fault, owner: str) -> None:
        self.number = number
        self.fault = fault
        self.owner = owner
        self.strikes = 0
        self.is_lifted = False
        self.trigger = TriggerState(fault.trigger)
        self._api_key = fault.match.api_key
        self._versions = fault.match.version_range

    def matches(self, request: Request, names: Callable[[], RequestNames]) -> bool:
        """Whether a request is one of those that it is about.

        Args:
            names: what the request names; called only if that is looked at.
        """
        match = self.fault.match
        if self._api_key is not None and request.api_key != self._api_key:
            return False
        if self._versions is not None and request.api_version not in self._versions:
            return False
        if match.client_id is not None and request.client_id != match.client_id:
            return False
        return not match.names_something or _names_match(match, names())

    def fires(self) -> bool:
        """Count a request that matches; returns whether it is struck."""
        if self.is_lifted or not self.trigger.fires():
            return False
        self.strikes += 1
        return True

    def status(self) -> FaultStatus:
        """The fault as it is now."""
        return FaultStatus(
            self.number,
            self.fault,
            self.owner,
            self.trigger.matches,
            self.strikes,
            self.is_lifted,
        )


def _names_match(match: Match, names: RequestNames) -> bool:
    if match.topic is not None and match.topic not in names.topics:
        return False
    if match.partition is not None:
        partitions = {
            partition for topic, partition in names.partitions if match.topic in (None, topic)
        }
        if match.partition not in partitions:
            return False
    if match.group is not None and match.group not in names.groups:
        return False
    tid = match.transactional_id
    return tid is None or tid in names.transactional_ids


def check_can_strike(match: Match) -> None:
    """Refuse a fault that no request of this broker would ever meet.

    Raises:
        ValueError: the API or version is not served, or its requests do not name such a thing.
    """
    key = match.api_key
    if key is None:
        return
    registration = REGISTRATIONS.get(key)
    if registration is None:
        raise ValueError(f"{match.api} is not served by this broker, so no fault can strike it")
    versions = match.version_range
    served = registration.versions
    if versions is not None and (
        versions.start not in served or (versions[-1] not in served and versions[-1] < VERSION_MAX)
    ):
        raise ValueError(
            f"{match.api} is served in the versions {served.start} to {served[-1]}, so no request "
            f"comes in {match.version}"
        )
    for kind in ("topic", "partition", "group", "transactional_id"):
        if getattr(match, kind) is not None and kind not in nameable(key):
            raise ValueError(_names_none(match, kind, key))


def _names_none(match: Match, kind: str, key: ApiKey) -> str:
    can = sorted(nameable(key))
    named = f"a fault may look at its {' or '.join(can)}" if can else "it names nothing"
    return f"a request of {match.api} names no {kind}: {named}"
