"""Administrators of ACLs, which they add and remove again; see `AclChecker`."""

from __future__ import annotations

from ....client.admin.acl_admin import creation_of
from ....client.errors import ClientError
from ....common.acl import (
    WILDCARD,
    AclBinding,
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from ....protocol import messages
from ..checkers.acl_checker import AclChecker
from .client import SimulatedClient, SimulatedCluster

TOPIC_NAMES = ("a", "b", "c")
"""So few that several change the ACLs of one at the same time."""


class AclAdmin(SimulatedClient):
    """One of them. Nobody else adds or removes what is its own.

    Args:
        cluster: the cluster.
        name: its name, which starts those of the principals of its ACLs.
        checker: is told what was acknowledged.
    """

    def __init__(self, cluster: SimulatedCluster, name: str, checker: AclChecker) -> None:
        super().__init__(cluster, name)
        self._checker = checker
        self._made = 0
        self._present: list[AclBinding] = []

    async def act(self) -> None:
        """Add an ACL, or remove one. Raises ClientError."""
        if self._present and self.random.random() < 0.4:
            await self._remove(self._present.pop(self.random.randrange(len(self._present))))
        else:
            await self._add()

    async def _add(self) -> None:
        self._made += 1
        pattern_type = self.random.choice((PatternType.LITERAL, PatternType.PREFIXED))
        binding = AclBinding(
            ResourcePattern(ResourceType.TOPIC, pattern_type, self.random.choice(TOPIC_NAMES)),
            AclEntry(f"User:{self.name}-{self._made}", WILDCARD, Operation.READ, Permission.ALLOW),
        )
        answer = await self.request(self.any_broker(), creation_of([binding]))
        if not answer.results[0].error_code:
            self._checker.added(binding)
            self._present.append(binding)

    async def _remove(self, binding: AclBinding) -> None:
        pattern, entry = binding
        self._checker.removing(binding)
        exactly = messages.DeleteAclsRequest.DeleteAclsFilter(
            resource_type_filter=pattern.resource_type,
            resource_name_filter=pattern.name,
            pattern_type_filter=pattern.pattern_type,
            principal_filter=entry.principal,
            host_filter=entry.host,
            operation=entry.operation,
            permission_type=entry.permission,
        )
        request = messages.DeleteAclsRequest(filters=[exactly])
        answer = await self.request(self.any_broker(), request)
        (found,) = answer.filter_results
        if found.error_code:
            raise ClientError("it is not known what was removed")
        if not found.matching_acls:
            self._checker.added(binding)  # that broker has yet to hear of it
            self._present.append(binding)
        elif not found.matching_acls[0].error_code:
            self._checker.removed(binding)
