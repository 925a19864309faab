"""What Kafka keeps or embeds and never sends by itself: schemas without an API key.

The records of `__consumer_offsets`, `__transaction_state` and `__share_group_state`,
control records, what members of a group tell each other, a forwarded request's principal,
and headers. What is no schema of Kafka's stays out; whoever keeps such records decides what
they mean. `versioned` reads and writes them with the version that goes before each.

As in `messages`, a module is imported when one of its messages is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..codec.message import MessageType
    from .classic_groups import *
    from .consumer_groups import *
    from .consumer_protocol import *
    from .control_records import *
    from .headers import *
    from .offset_commits import *
    from .principal import *
    from .share_groups import *
    from .share_state import *
    from .streams_groups import *
    from .transactions import *


def _pairs(*names: str) -> tuple[str, ...]:
    return tuple(name + side for name in names for side in ("Key", "Value"))


_NAMES_BY_MODULE: dict[str, tuple[str, ...]] = {
    "offset_commits": _pairs("OffsetCommit", "LegacyOffsetCommit"),
    "classic_groups": _pairs("GroupMetadata"),
    "consumer_groups": _pairs(
        "ConsumerGroupMetadata",
        "ConsumerGroupPartitionMetadata",
        "ConsumerGroupMemberMetadata",
        "ConsumerGroupTargetAssignmentMetadata",
        "ConsumerGroupTargetAssignmentMember",
        "ConsumerGroupCurrentMemberAssignment",
        "ConsumerGroupRegularExpression",
    ),
    "share_groups": _pairs(
        "ShareGroupMetadata",
        "ShareGroupMemberMetadata",
        "ShareGroupTargetAssignmentMetadata",
        "ShareGroupTargetAssignmentMember",
        "ShareGroupCurrentMemberAssignment",
        "ShareGroupStatePartitionMetadata",
    ),
    "streams_groups": _pairs(
        "StreamsGroupMetadata",
        "StreamsGroupMemberMetadata",
        "StreamsGroupTargetAssignmentMetadata",
        "StreamsGroupTargetAssignmentMember",
        "StreamsGroupCurrentMemberAssignment",
        "StreamsGroupTopology",
    ),
    "transactions": _pairs("TransactionLog"),
    "share_state": _pairs("ShareSnapshot", "ShareUpdate"),
    "consumer_protocol": ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment"),
    "control_records": (
        "ControlRecordTypeSchema",
        "EndTxnMarker",
        "LeaderChangeMessage",
        "SnapshotHeaderRecord",
        "SnapshotFooterRecord",
        "KRaftVersionRecord",
        "VotersRecord",
    ),
    "principal": ("DefaultPrincipalData",),
    "headers": ("RequestHeader", "ResponseHeader"),
}


def names_by_module() -> dict[str, tuple[str, ...]]:
    """The names of the messages in each module."""
    return dict(_NAMES_BY_MODULE)


def message_names() -> list[str]:
    """The names of all messages."""
    return [name for names in _NAMES_BY_MODULE.values() for name in names]


def find_message(name: str) -> MessageType:
    """The message of a name.

    Raises:
        AttributeError: there is none.
    """
    found: MessageType = globals().get(name) or __getattr__(name)
    return found


def __getattr__(name: str) -> Any:
    for module, names in _NAMES_BY_MODULE.items():
        if name in names:
            message = getattr(import_module(f".{module}", __name__), name)
            globals()[name] = message
            return message
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *message_names()]
