"""What administrators of ACLs are promised: what was added stays, and every broker knows it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ....common.acl import AclBinding
from .invariants import InvariantBroken


class AclChecker:
    """Knows what must be there, and what must not. Each ACL is added once, and removed once."""

    def __init__(self) -> None:
        self._added: set[AclBinding] = set()
        self._removed: set[AclBinding] = set()

    def added(self, binding: AclBinding) -> None:
        """It was acknowledged that an ACL was added."""
        self._added.add(binding)

    def removing(self, binding: AclBinding) -> None:
        """One that was added may be gone from now on."""
        self._added.discard(binding)

    def removed(self, binding: AclBinding) -> None:
        """It was acknowledged that one was removed."""
        self._removed.add(binding)

    @property
    def acknowledged(self) -> int:
        """How many are there for certain, or were removed."""
        return len(self._added) + len(self._removed)

    def check_rest(self, known: Mapping[int, Collection[AclBinding]]) -> None:
        """Check what brokers know, by their ids. Raises InvariantBroken."""
        for broker_id, bindings in known.items():
            for each in self._added.difference(bindings):
                raise InvariantBroken(f"{each} was added, and broker {broker_id} does not know it")
            for each in self._removed.intersection(bindings):
                raise InvariantBroken(f"{each} was removed, and broker {broker_id} goes by it")
        if len({frozenset(each) for each in known.values()}) > 1:
            raise InvariantBroken("brokers know different ACLs")
