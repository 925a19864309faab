"""One member of a streams group, as its records keep it: a thread of a Kafka Streams instance.

A member is never changed: an update is another value, so that an earlier image of a group can be
kept by keeping its members. Source: Kafka's StreamsGroupMember.
"""

from __future__ import annotations

from typing import NamedTuple

from .states import StreamsMemberState
from .tasks import NOTHING_OWNED, OwnedTasks

JOIN_EPOCH = 0
"""The epoch of a heartbeat by which a member joins, or joins again."""

LEAVE_EPOCH = -1
"""The epoch of a heartbeat by which a member leaves."""

NO_TIMEOUT = -1
"""The rebalance timeout of a heartbeat that does not tell it again."""


class UserEndpoint(NamedTuple):
    """Where others reach an instance, for interactive queries."""

    host: str
    port: int


class StreamsMember(NamedTuple):
    """A member of one group.

    Attributes:
        member_epoch: the group epoch that it has come to.
        previous_member_epoch: where it was before; its answer may have been lost.
        rebalance_timeout_ms: how long it may take to give up tasks.
        topology_epoch: of the topology that it runs.
        process_id: of its instance; threads of one share their states' folder.
        client_tags: names and values, in order.
        assigned: what it runs, or may run from now on.
        pending_revocation: what it has to give up, and has until it says so.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: StreamsMemberState = StreamsMemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = NO_TIMEOUT
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: UserEndpoint | None = None
    client_tags: tuple[tuple[str, str], ...] = ()
    assigned: OwnedTasks = NOTHING_OWNED
    pending_revocation: OwnedTasks = NOTHING_OWNED

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Whether it has all that the target of that epoch gives it."""
        return self.state is StreamsMemberState.STABLE and self.member_epoch == target_epoch

    def assignment_epoch(self, subtopology_id: str, partition: int) -> int | None:
        """The member epoch since which it has an active task, or None if it has it not."""
        for owned in (self.assigned, self.pending_revocation):
            epoch = owned.active.get(subtopology_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None
