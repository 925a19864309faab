"""What happens to a group on purpose: a member's session expires, everybody shares anew."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ...coordinator.group.classic.group import Group
from ...coordinator.group.consumer.group import ConsumerGroup
from ..control.verbs import VerbError

if TYPE_CHECKING:
    from ..control.verbs import Controlled

logger = logging.getLogger(__name__)


def expire_session(target: Controlled, group: str, member: str | None = None) -> list[str]:
    """Give up a member, or all, as if silent for their session timeout; returns their ids.

    Args:
        member: its member id, its instance id, or the client id of one or several.
    """
    known = _group(target, group)
    doomed = [
        member_id
        for member_id, each in known.members.items()
        if member in (None, member_id, _instance_id(each), each.client_id)
    ]
    if not doomed:
        there = ", ".join(known.members) or "nobody"
        raise VerbError(f"group {group} has no member {member or ''}: in it is {there}")
    for member_id in doomed:
        logger.warning("outage: the session of %s in group %s expires", member_id, group)
        target.broker.group_coordinator.interventions.expire_session(group, member_id)
    return doomed


def _instance_id(member: object) -> str | None:
    found: str | None = getattr(member, "group_instance_id", getattr(member, "instance_id", None))
    return found


def rebalance(target: Controlled, group: str) -> None:
    """Have the members of a group share its partitions anew."""
    if not _group(target, group).members:
        raise VerbError(f"group {group} has no members to share anything")
    logger.warning("outage: group %s rebalances", group)
    target.broker.group_coordinator.interventions.rebalance(group, "a test asked for it")


def _group(target: Controlled, name: str) -> Group | ConsumerGroup:
    """The group of a name. Raises VerbError: this broker does not know it."""
    coordinator = target.broker.group_coordinator
    found: list[Group | ConsumerGroup] = [*coordinator.groups, *coordinator.consumer_groups]
    for each in found:
        if each.group_id == name:
            return each
    raise VerbError(f"there is no group {name} on this broker")
