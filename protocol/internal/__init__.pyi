# Written by `python -m odradek.tools.docs.stubs`: change the schema, not this file.
# fmt: off
from ..codec.message import Message
from .classic_groups import GroupMetadataKey as GroupMetadataKey
from .classic_groups import GroupMetadataValue as GroupMetadataValue
from .consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentKey as ConsumerGroupCurrentMemberAssignmentKey,
)
from .consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentValue as ConsumerGroupCurrentMemberAssignmentValue,
)
from .consumer_groups import ConsumerGroupMemberMetadataKey as ConsumerGroupMemberMetadataKey
from .consumer_groups import ConsumerGroupMemberMetadataValue as ConsumerGroupMemberMetadataValue
from .consumer_groups import ConsumerGroupMetadataKey as ConsumerGroupMetadataKey
from .consumer_groups import ConsumerGroupMetadataValue as ConsumerGroupMetadataValue
from .consumer_groups import ConsumerGroupPartitionMetadataKey as ConsumerGroupPartitionMetadataKey
from .consumer_groups import (
    ConsumerGroupPartitionMetadataValue as ConsumerGroupPartitionMetadataValue,
)
from .consumer_groups import ConsumerGroupRegularExpressionKey as ConsumerGroupRegularExpressionKey
from .consumer_groups import (
    ConsumerGroupRegularExpressionValue as ConsumerGroupRegularExpressionValue,
)
from .consumer_groups import (
    ConsumerGroupTargetAssignmentMemberKey as ConsumerGroupTargetAssignmentMemberKey,
)
from .consumer_groups import (
    ConsumerGroupTargetAssignmentMemberValue as ConsumerGroupTargetAssignmentMemberValue,
)
from .consumer_groups import (
    ConsumerGroupTargetAssignmentMetadataKey as ConsumerGroupTargetAssignmentMetadataKey,
)
from .consumer_groups import (
    ConsumerGroupTargetAssignmentMetadataValue as ConsumerGroupTargetAssignmentMetadataValue,
)
from .consumer_protocol import ConsumerProtocolAssignment as ConsumerProtocolAssignment
from .consumer_protocol import ConsumerProtocolSubscription as ConsumerProtocolSubscription
from .control_records import ControlRecordTypeSchema as ControlRecordTypeSchema
from .control_records import EndTxnMarker as EndTxnMarker
from .control_records import KRaftVersionRecord as KRaftVersionRecord
from .control_records import LeaderChangeMessage as LeaderChangeMessage
from .control_records import SnapshotFooterRecord as SnapshotFooterRecord
from .control_records import SnapshotHeaderRecord as SnapshotHeaderRecord
from .control_records import VotersRecord as VotersRecord
from .headers import RequestHeader as RequestHeader
from .headers import ResponseHeader as ResponseHeader
from .offset_commits import LegacyOffsetCommitKey as LegacyOffsetCommitKey
from .offset_commits import LegacyOffsetCommitValue as LegacyOffsetCommitValue
from .offset_commits import OffsetCommitKey as OffsetCommitKey
from .offset_commits import OffsetCommitValue as OffsetCommitValue
from .principal import DefaultPrincipalData as DefaultPrincipalData
from .share_groups import (
    ShareGroupCurrentMemberAssignmentKey as ShareGroupCurrentMemberAssignmentKey,
)
from .share_groups import (
    ShareGroupCurrentMemberAssignmentValue as ShareGroupCurrentMemberAssignmentValue,
)
from .share_groups import ShareGroupMemberMetadataKey as ShareGroupMemberMetadataKey
from .share_groups import ShareGroupMemberMetadataValue as ShareGroupMemberMetadataValue
from .share_groups import ShareGroupMetadataKey as ShareGroupMetadataKey
from .share_groups import ShareGroupMetadataValue as ShareGroupMetadataValue
from .share_groups import ShareGroupStatePartitionMetadataKey as ShareGroupStatePartitionMetadataKey
from .share_groups import (
    ShareGroupStatePartitionMetadataValue as ShareGroupStatePartitionMetadataValue,
)
from .share_groups import ShareGroupTargetAssignmentMemberKey as ShareGroupTargetAssignmentMemberKey
from .share_groups import (
    ShareGroupTargetAssignmentMemberValue as ShareGroupTargetAssignmentMemberValue,
)
from .share_groups import (
    ShareGroupTargetAssignmentMetadataKey as ShareGroupTargetAssignmentMetadataKey,
)
from .share_groups import (
    ShareGroupTargetAssignmentMetadataValue as ShareGroupTargetAssignmentMetadataValue,
)
from .share_state import ShareSnapshotKey as ShareSnapshotKey
from .share_state import ShareSnapshotValue as ShareSnapshotValue
from .share_state import ShareUpdateKey as ShareUpdateKey
from .share_state import ShareUpdateValue as ShareUpdateValue
from .streams_groups import (
    StreamsGroupCurrentMemberAssignmentKey as StreamsGroupCurrentMemberAssignmentKey,
)
from .streams_groups import (
    StreamsGroupCurrentMemberAssignmentValue as StreamsGroupCurrentMemberAssignmentValue,
)
from .streams_groups import StreamsGroupMemberMetadataKey as StreamsGroupMemberMetadataKey
from .streams_groups import StreamsGroupMemberMetadataValue as StreamsGroupMemberMetadataValue
from .streams_groups import StreamsGroupMetadataKey as StreamsGroupMetadataKey
from .streams_groups import StreamsGroupMetadataValue as StreamsGroupMetadataValue
from .streams_groups import (
    StreamsGroupTargetAssignmentMemberKey as StreamsGroupTargetAssignmentMemberKey,
)
from .streams_groups import (
    StreamsGroupTargetAssignmentMemberValue as StreamsGroupTargetAssignmentMemberValue,
)
from .streams_groups import (
    StreamsGroupTargetAssignmentMetadataKey as StreamsGroupTargetAssignmentMetadataKey,
)
from .streams_groups import (
    StreamsGroupTargetAssignmentMetadataValue as StreamsGroupTargetAssignmentMetadataValue,
)
from .streams_groups import StreamsGroupTopologyKey as StreamsGroupTopologyKey
from .streams_groups import StreamsGroupTopologyValue as StreamsGroupTopologyValue
from .transactions import TransactionLogKey as TransactionLogKey
from .transactions import TransactionLogValue as TransactionLogValue

def find_message(name: str) -> Message: ...
def message_names() -> list[str]: ...
def names_by_module() -> dict[str, tuple[str, ...]]: ...
