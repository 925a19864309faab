"""What is promised to members of a share group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ....broker.share.record_states import AcknowledgeType
from ..checkers.invariants import InvariantBroken
from .broker import DELIVERIES_MAX, LOCK_MS, RECORDS

FINAL = frozenset({AcknowledgeType.ACCEPT, AcknowledgeType.REJECT})


class Lease(NamedTuple):
    """Whom a record was delivered to, and until when it is only theirs."""

    member_id: str
    until_ms: int


class ShareInvariants:
    """Watches over one run.

    Attributes:
        deliveries: how often each record was delivered.
        accepted: how many acknowledgements were answered without error.
    """

    def __init__(self) -> None:
        self.deliveries = [0] * RECORDS
        self.accepted = 0
        self._final: set[int] = set()
        self._said: set[int] = set()
        """Of which somebody has said something final, whatever the answer."""
        self._leases: dict[int, Lease] = {}
        self._leader_epoch = 0

    @property
    def redelivered(self) -> int:
        """How many records were delivered more than once."""
        return sum(each > 1 for each in self.deliveries)

    def delivered(
        self, member_id: str, leader_epoch: int, first: int, last: int, count: int, now_ms: int
    ) -> None:
        """A leader hands records to a member.

        One that has been replaced and does not know it may hand out anything: what its members say
        of it is refused, since whoever reads a state fences the leaders before. So it is the latest
        leader that was heard of whose deliveries are looked at. A leader's count goes on from what
        is stored, which a record's release or the end of its lock does: it may say less than were
        made, and never too much.

        Raises:
            InvariantBroken: a record is done with, is somebody else's, or was delivered too often.
        """
        if leader_epoch < self._leader_epoch:
            return
        self._heard_of(leader_epoch)
        if count > DELIVERIES_MAX:
            raise InvariantBroken(f"{first}-{last} is delivered for the {count}th time")
        for offset in range(first, last + 1):
            lease = self._leases.get(offset)
            if offset in self._final:
                raise InvariantBroken(f"{offset} is delivered, and was acknowledged before")
            if lease is not None and now_ms < lease.until_ms:
                raise InvariantBroken(f"{offset} goes to {member_id}, and is {lease.member_id}'s")
            self.deliveries[offset] += 1
            self._leases[offset] = Lease(member_id, now_ms + LOCK_MS)

    def said(
        self, member_id: str, first: int, last: int, kind: AcknowledgeType, now_ms: int
    ) -> list[int]:
        """A member says what becomes of records; the answer may never come.

        Returns:
            those that are its own. What it says of others is passed over where the share partition
            begins behind them, as in Kafka: they were given up when their last lock ended.
        """
        if kind in FINAL:
            self._said.update(range(first, last + 1))
        leases = self._leases
        return [
            offset
            for offset in range(first, last + 1)
            if offset in leases
            and leases[offset].member_id == member_id
            and now_ms < leases[offset].until_ms
        ]

    def acknowledged(
        self, leader_epoch: int, offsets: Iterable[int], kind: AcknowledgeType, now_ms: int
    ) -> None:
        """A leader has answered an acknowledgement of a member's own records without error."""
        self.accepted += 1
        self._heard_of(leader_epoch)
        for offset in offsets:
            lease = self._leases.get(offset)
            if kind is AcknowledgeType.RENEW:
                if lease is not None:
                    self._leases[offset] = lease._replace(until_ms=now_ms + LOCK_MS)
                continue
            self._leases.pop(offset, None)
            if kind in FINAL:
                self._final.add(offset)

    def gone(self, member_id: str) -> None:
        """A member's session is closed: what it had may go to others."""
        for offset, lease in list(self._leases.items()):
            if lease.member_id == member_id:
                del self._leases[offset]

    def check_end(self, start_offset: int) -> None:
        """All is read by somebody who accepts whatever comes. Raises InvariantBroken."""
        if start_offset != RECORDS:
            raise InvariantBroken(f"the share partition begins at {start_offset}, not {RECORDS}")
        for offset, count in enumerate(self.deliveries):
            if not count:
                raise InvariantBroken(f"{offset} was never delivered")
            if offset not in self._said and count < DELIVERIES_MAX:
                raise InvariantBroken(f"{offset} was delivered {count} times, and given up")

    def _heard_of(self, leader_epoch: int) -> None:
        if leader_epoch > self._leader_epoch:
            self._leader_epoch = leader_epoch
            self._leases.clear()
