"""The states of a record that a share group reads, as a table.

Drawn in `docs/share_group_states.md`. Source: KIP-932; Kafka's RecordState.
"""

from __future__ import annotations

from enum import Enum, IntEnum

from ...common.state_table import StateTable


class RecordState(IntEnum):
    """Where a record stands; the value is the number in requests and records."""

    AVAILABLE = 0
    """It may be handed out."""
    ACQUIRED = 1
    """A member has it, for as long as the lock lasts."""
    ACKNOWLEDGED = 2
    """It was processed."""
    ARCHIVED = 4
    """It is not handed out any more."""


class RecordEvent(Enum):
    """What happens to a record."""

    ACQUIRE = "acquired"
    ACCEPT = "accepted"
    RELEASE = "released, or its lock expired"
    EXHAUST = "released at the delivery limit"
    REJECT = "rejected, or there is no such record"
    RENEW = "lock renewed"
    REMOVE = "not in the log any more, or aborted"


_R = RecordState
_E = RecordEvent
RECORD_TRANSITIONS = StateTable(
    "a record",
    {
        _R.AVAILABLE: (
            (_E.ACQUIRE, _R.ACQUIRED, "a member fetched it; its delivery count grows by one"),
            (_E.REMOVE, _R.ARCHIVED, "nobody can be given it"),
        ),
        _R.ACQUIRED: (
            (_E.ACCEPT, _R.ACKNOWLEDGED, "its member processed it"),
            (_E.RELEASE, _R.AVAILABLE, "another member, or the same, may try it again"),
            (_E.EXHAUST, _R.ARCHIVED, "it was tried as often as the group allows"),
            (_E.REJECT, _R.ARCHIVED, "nobody can process it"),
            (_E.RENEW, _R.ACQUIRED, "its member goes on; the lock begins anew"),
        ),
    },
    label=lambda state: state.name.capitalize(),
    initial=_R.AVAILABLE,
)
"""What becomes of a record; one that is acknowledged or archived stays so."""

TERMINAL = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})
"""A record in one of these is done with."""


class AcknowledgeType(IntEnum):
    """What a client says of a record."""

    GAP = 0
    """There is no record of that offset."""
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


EVENT_OF = {
    AcknowledgeType.GAP: RecordEvent.REJECT,
    AcknowledgeType.ACCEPT: RecordEvent.ACCEPT,
    AcknowledgeType.RELEASE: RecordEvent.RELEASE,
    AcknowledgeType.REJECT: RecordEvent.REJECT,
    AcknowledgeType.RENEW: RecordEvent.RENEW,
}
"""What an acknowledgement does to a record; a release at the limit exhausts it."""


class AcquireMode(IntEnum):
    """How many records a fetch may acquire."""

    BATCH_OPTIMIZED = 0
    """Whole batches, until the requested number is reached."""
    RECORD_LIMIT = 1
    """No more than the requested number."""
