"""What consumer groups are promised: each partition one owner, and committed offsets stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from .invariants import InvariantBroken
from .log_checker import Key

REBALANCE_TIMEOUT_MS = 10_000
"""For so long a member may keep what it is to give up; its session is longer."""
SURE_MS = REBALANCE_TIMEOUT_MS * 3 // 4
"""Who was heard of within this time is a member for every coordinator, however fast its clock."""


class GroupChecker:
    """Watches over the groups.

    Args:
        is_lossy: whether what groups commit may be gone.
    """

    def __init__(self, is_lossy: Callable[[], bool]) -> None:
        self._is_lossy = is_lossy
        self._committed: dict[tuple[str, Key], int] = {}
        self._owners: dict[tuple[str, Key], str] = {}
        self._heard_ms: dict[str, int] = {}
        self._commits: Counter[str] = Counter()

    # -- offsets -----------------------------------------------------------------------------

    def committed(self, group: str, key: Key, offset: int) -> None:
        """A commit was acknowledged."""
        self._commits[group] += 1
        at = (group, key)
        self._committed[at] = max(self._committed.get(at, -1), offset)

    @property
    def commits(self) -> int:
        """How many were acknowledged."""
        return self._commits.total()

    def commits_of(self, group: str) -> int:
        """How many of one group."""
        return self._commits[group]

    def least(self, group: str, key: Key) -> int:
        """What one who asks now must be answered at least; -1: nothing was committed."""
        return self._committed.get((group, key), -1)

    def fetched(self, group: str, key: Key, least: int, offset: int) -> None:
        """Somebody was answered an offset. Raises InvariantBroken."""
        if offset < least and not self._is_lossy():
            raise InvariantBroken(
                f"{group} has committed {least} of {key[0].hex()}-{key[1]}, and is told {offset}"
            )

    # -- owners ------------------------------------------------------------------------------

    def heard_of(self, group: str, member: str, sent_ms: int) -> None:
        """A heartbeat that a member sent then was answered."""
        self._heard_ms[member] = sent_ms

    def gone(self, group: str, member: str) -> None:
        """A member has left, or is silent from now on."""
        self._heard_ms.pop(member, None)
        for at in [at for at, owner in self._owners.items() if owner == member]:
            del self._owners[at]

    def owns(self, group: str, member: str, keys: Iterable[Key], now_ms: int) -> None:
        """A member owns these partitions and no others. Raises InvariantBroken."""
        owned = {(group, key) for key in keys}
        for at in [at for at, owner in self._owners.items() if owner == member]:
            if at not in owned:
                del self._owners[at]
        for at in owned:
            other = self._owners.get(at, member)
            is_sure = now_ms - self._heard_ms.get(other, 0) < SURE_MS
            if other != member and is_sure and not self._is_lossy():
                raise InvariantBroken(
                    f"{at[1][0].hex()}-{at[1][1]} is given to {member} of {group}, "
                    f"and {other} has not given it up"
                )
            self._owners[at] = member
