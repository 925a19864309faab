# Written by `python -m odradek.tools.docs.stubs`: change the schema, not this file.
# fmt: off
from ..api_keys import ApiKey
from ..codec.message import Message
from .add_offsets_to_txn import AddOffsetsToTxnRequest as AddOffsetsToTxnRequest
from .add_offsets_to_txn import AddOffsetsToTxnResponse as AddOffsetsToTxnResponse
from .add_partitions_to_txn import AddPartitionsToTxnRequest as AddPartitionsToTxnRequest
from .add_partitions_to_txn import AddPartitionsToTxnResponse as AddPartitionsToTxnResponse
from .add_raft_voter import AddRaftVoterRequest as AddRaftVoterRequest
from .add_raft_voter import AddRaftVoterResponse as AddRaftVoterResponse
from .allocate_producer_ids import AllocateProducerIdsRequest as AllocateProducerIdsRequest
from .allocate_producer_ids import AllocateProducerIdsResponse as AllocateProducerIdsResponse
from .alter_client_quotas import AlterClientQuotasRequest as AlterClientQuotasRequest
from .alter_client_quotas import AlterClientQuotasResponse as AlterClientQuotasResponse
from .alter_configs import AlterConfigsRequest as AlterConfigsRequest
from .alter_configs import AlterConfigsResponse as AlterConfigsResponse
from .alter_partition import AlterPartitionRequest as AlterPartitionRequest
from .alter_partition import AlterPartitionResponse as AlterPartitionResponse
from .alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest as AlterPartitionReassignmentsRequest,
)
from .alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse as AlterPartitionReassignmentsResponse,
)
from .alter_replica_log_dirs import AlterReplicaLogDirsRequest as AlterReplicaLogDirsRequest
from .alter_replica_log_dirs import AlterReplicaLogDirsResponse as AlterReplicaLogDirsResponse
from .alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest as AlterShareGroupOffsetsRequest,
)
from .alter_share_group_offsets import (
    AlterShareGroupOffsetsResponse as AlterShareGroupOffsetsResponse,
)
from .alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest as AlterUserScramCredentialsRequest,
)
from .alter_user_scram_credentials import (
    AlterUserScramCredentialsResponse as AlterUserScramCredentialsResponse,
)
from .api_versions import ApiVersionsRequest as ApiVersionsRequest
from .api_versions import ApiVersionsResponse as ApiVersionsResponse
from .assign_replicas_to_dirs import AssignReplicasToDirsRequest as AssignReplicasToDirsRequest
from .assign_replicas_to_dirs import AssignReplicasToDirsResponse as AssignReplicasToDirsResponse
from .begin_quorum_epoch import BeginQuorumEpochRequest as BeginQuorumEpochRequest
from .begin_quorum_epoch import BeginQuorumEpochResponse as BeginQuorumEpochResponse
from .broker_heartbeat import BrokerHeartbeatRequest as BrokerHeartbeatRequest
from .broker_heartbeat import BrokerHeartbeatResponse as BrokerHeartbeatResponse
from .broker_registration import BrokerRegistrationRequest as BrokerRegistrationRequest
from .broker_registration import BrokerRegistrationResponse as BrokerRegistrationResponse
from .consumer_group_describe import ConsumerGroupDescribeRequest as ConsumerGroupDescribeRequest
from .consumer_group_describe import ConsumerGroupDescribeResponse as ConsumerGroupDescribeResponse
from .consumer_group_heartbeat import ConsumerGroupHeartbeatRequest as ConsumerGroupHeartbeatRequest
from .consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponse as ConsumerGroupHeartbeatResponse,
)
from .controlled_shutdown import ControlledShutdownRequest as ControlledShutdownRequest
from .controlled_shutdown import ControlledShutdownResponse as ControlledShutdownResponse
from .controller_registration import ControllerRegistrationRequest as ControllerRegistrationRequest
from .controller_registration import (
    ControllerRegistrationResponse as ControllerRegistrationResponse,
)
from .create_acls import CreateAclsRequest as CreateAclsRequest
from .create_acls import CreateAclsResponse as CreateAclsResponse
from .create_delegation_token import CreateDelegationTokenRequest as CreateDelegationTokenRequest
from .create_delegation_token import CreateDelegationTokenResponse as CreateDelegationTokenResponse
from .create_partitions import CreatePartitionsRequest as CreatePartitionsRequest
from .create_partitions import CreatePartitionsResponse as CreatePartitionsResponse
from .create_topics import CreateTopicsRequest as CreateTopicsRequest
from .create_topics import CreateTopicsResponse as CreateTopicsResponse
from .delete_acls import DeleteAclsRequest as DeleteAclsRequest
from .delete_acls import DeleteAclsResponse as DeleteAclsResponse
from .delete_groups import DeleteGroupsRequest as DeleteGroupsRequest
from .delete_groups import DeleteGroupsResponse as DeleteGroupsResponse
from .delete_records import DeleteRecordsRequest as DeleteRecordsRequest
from .delete_records import DeleteRecordsResponse as DeleteRecordsResponse
from .delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest as DeleteShareGroupOffsetsRequest,
)
from .delete_share_group_offsets import (
    DeleteShareGroupOffsetsResponse as DeleteShareGroupOffsetsResponse,
)
from .delete_share_group_state import DeleteShareGroupStateRequest as DeleteShareGroupStateRequest
from .delete_share_group_state import DeleteShareGroupStateResponse as DeleteShareGroupStateResponse
from .delete_topics import DeleteTopicsRequest as DeleteTopicsRequest
from .delete_topics import DeleteTopicsResponse as DeleteTopicsResponse
from .describe_acls import DescribeAclsRequest as DescribeAclsRequest
from .describe_acls import DescribeAclsResponse as DescribeAclsResponse
from .describe_client_quotas import DescribeClientQuotasRequest as DescribeClientQuotasRequest
from .describe_client_quotas import DescribeClientQuotasResponse as DescribeClientQuotasResponse
from .describe_cluster import DescribeClusterRequest as DescribeClusterRequest
from .describe_cluster import DescribeClusterResponse as DescribeClusterResponse
from .describe_configs import DescribeConfigsRequest as DescribeConfigsRequest
from .describe_configs import DescribeConfigsResponse as DescribeConfigsResponse
from .describe_delegation_token import (
    DescribeDelegationTokenRequest as DescribeDelegationTokenRequest,
)
from .describe_delegation_token import (
    DescribeDelegationTokenResponse as DescribeDelegationTokenResponse,
)
from .describe_groups import DescribeGroupsRequest as DescribeGroupsRequest
from .describe_groups import DescribeGroupsResponse as DescribeGroupsResponse
from .describe_log_dirs import DescribeLogDirsRequest as DescribeLogDirsRequest
from .describe_log_dirs import DescribeLogDirsResponse as DescribeLogDirsResponse
from .describe_producers import DescribeProducersRequest as DescribeProducersRequest
from .describe_producers import DescribeProducersResponse as DescribeProducersResponse
from .describe_quorum import DescribeQuorumRequest as DescribeQuorumRequest
from .describe_quorum import DescribeQuorumResponse as DescribeQuorumResponse
from .describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest as DescribeShareGroupOffsetsRequest,
)
from .describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponse as DescribeShareGroupOffsetsResponse,
)
from .describe_topic_partitions import (
    DescribeTopicPartitionsRequest as DescribeTopicPartitionsRequest,
)
from .describe_topic_partitions import (
    DescribeTopicPartitionsResponse as DescribeTopicPartitionsResponse,
)
from .describe_transactions import DescribeTransactionsRequest as DescribeTransactionsRequest
from .describe_transactions import DescribeTransactionsResponse as DescribeTransactionsResponse
from .describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest as DescribeUserScramCredentialsRequest,
)
from .describe_user_scram_credentials import (
    DescribeUserScramCredentialsResponse as DescribeUserScramCredentialsResponse,
)
from .elect_leaders import ElectLeadersRequest as ElectLeadersRequest
from .elect_leaders import ElectLeadersResponse as ElectLeadersResponse
from .end_quorum_epoch import EndQuorumEpochRequest as EndQuorumEpochRequest
from .end_quorum_epoch import EndQuorumEpochResponse as EndQuorumEpochResponse
from .end_txn import EndTxnRequest as EndTxnRequest
from .end_txn import EndTxnResponse as EndTxnResponse
from .envelope import EnvelopeRequest as EnvelopeRequest
from .envelope import EnvelopeResponse as EnvelopeResponse
from .expire_delegation_token import ExpireDelegationTokenRequest as ExpireDelegationTokenRequest
from .expire_delegation_token import ExpireDelegationTokenResponse as ExpireDelegationTokenResponse
from .fetch import FetchRequest as FetchRequest
from .fetch import FetchResponse as FetchResponse
from .fetch_snapshot import FetchSnapshotRequest as FetchSnapshotRequest
from .fetch_snapshot import FetchSnapshotResponse as FetchSnapshotResponse
from .find_coordinator import FindCoordinatorRequest as FindCoordinatorRequest
from .find_coordinator import FindCoordinatorResponse as FindCoordinatorResponse
from .get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest as GetTelemetrySubscriptionsRequest,
)
from .get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsResponse as GetTelemetrySubscriptionsResponse,
)
from .heartbeat import HeartbeatRequest as HeartbeatRequest
from .heartbeat import HeartbeatResponse as HeartbeatResponse
from .incremental_alter_configs import (
    IncrementalAlterConfigsRequest as IncrementalAlterConfigsRequest,
)
from .incremental_alter_configs import (
    IncrementalAlterConfigsResponse as IncrementalAlterConfigsResponse,
)
from .init_producer_id import InitProducerIdRequest as InitProducerIdRequest
from .init_producer_id import InitProducerIdResponse as InitProducerIdResponse
from .initialize_share_group_state import (
    InitializeShareGroupStateRequest as InitializeShareGroupStateRequest,
)
from .initialize_share_group_state import (
    InitializeShareGroupStateResponse as InitializeShareGroupStateResponse,
)
from .join_group import JoinGroupRequest as JoinGroupRequest
from .join_group import JoinGroupResponse as JoinGroupResponse
from .leader_and_isr import LeaderAndIsrRequest as LeaderAndIsrRequest
from .leader_and_isr import LeaderAndIsrResponse as LeaderAndIsrResponse
from .leave_group import LeaveGroupRequest as LeaveGroupRequest
from .leave_group import LeaveGroupResponse as LeaveGroupResponse
from .list_config_resources import ListConfigResourcesRequest as ListConfigResourcesRequest
from .list_config_resources import ListConfigResourcesResponse as ListConfigResourcesResponse
from .list_groups import ListGroupsRequest as ListGroupsRequest
from .list_groups import ListGroupsResponse as ListGroupsResponse
from .list_offsets import ListOffsetsRequest as ListOffsetsRequest
from .list_offsets import ListOffsetsResponse as ListOffsetsResponse
from .list_partition_reassignments import (
    ListPartitionReassignmentsRequest as ListPartitionReassignmentsRequest,
)
from .list_partition_reassignments import (
    ListPartitionReassignmentsResponse as ListPartitionReassignmentsResponse,
)
from .list_transactions import ListTransactionsRequest as ListTransactionsRequest
from .list_transactions import ListTransactionsResponse as ListTransactionsResponse
from .metadata import MetadataRequest as MetadataRequest
from .metadata import MetadataResponse as MetadataResponse
from .offset_commit import OffsetCommitRequest as OffsetCommitRequest
from .offset_commit import OffsetCommitResponse as OffsetCommitResponse
from .offset_delete import OffsetDeleteRequest as OffsetDeleteRequest
from .offset_delete import OffsetDeleteResponse as OffsetDeleteResponse
from .offset_fetch import OffsetFetchRequest as OffsetFetchRequest
from .offset_fetch import OffsetFetchResponse as OffsetFetchResponse
from .offset_for_leader_epoch import OffsetForLeaderEpochRequest as OffsetForLeaderEpochRequest
from .offset_for_leader_epoch import OffsetForLeaderEpochResponse as OffsetForLeaderEpochResponse
from .produce import ProduceRequest as ProduceRequest
from .produce import ProduceResponse as ProduceResponse
from .push_telemetry import PushTelemetryRequest as PushTelemetryRequest
from .push_telemetry import PushTelemetryResponse as PushTelemetryResponse
from .read_share_group_state import ReadShareGroupStateRequest as ReadShareGroupStateRequest
from .read_share_group_state import ReadShareGroupStateResponse as ReadShareGroupStateResponse
from .read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest as ReadShareGroupStateSummaryRequest,
)
from .read_share_group_state_summary import (
    ReadShareGroupStateSummaryResponse as ReadShareGroupStateSummaryResponse,
)
from .remove_raft_voter import RemoveRaftVoterRequest as RemoveRaftVoterRequest
from .remove_raft_voter import RemoveRaftVoterResponse as RemoveRaftVoterResponse
from .renew_delegation_token import RenewDelegationTokenRequest as RenewDelegationTokenRequest
from .renew_delegation_token import RenewDelegationTokenResponse as RenewDelegationTokenResponse
from .sasl_authenticate import SaslAuthenticateRequest as SaslAuthenticateRequest
from .sasl_authenticate import SaslAuthenticateResponse as SaslAuthenticateResponse
from .sasl_handshake import SaslHandshakeRequest as SaslHandshakeRequest
from .sasl_handshake import SaslHandshakeResponse as SaslHandshakeResponse
from .share_acknowledge import ShareAcknowledgeRequest as ShareAcknowledgeRequest
from .share_acknowledge import ShareAcknowledgeResponse as ShareAcknowledgeResponse
from .share_fetch import ShareFetchRequest as ShareFetchRequest
from .share_fetch import ShareFetchResponse as ShareFetchResponse
from .share_group_describe import ShareGroupDescribeRequest as ShareGroupDescribeRequest
from .share_group_describe import ShareGroupDescribeResponse as ShareGroupDescribeResponse
from .share_group_heartbeat import ShareGroupHeartbeatRequest as ShareGroupHeartbeatRequest
from .share_group_heartbeat import ShareGroupHeartbeatResponse as ShareGroupHeartbeatResponse
from .stop_replica import StopReplicaRequest as StopReplicaRequest
from .stop_replica import StopReplicaResponse as StopReplicaResponse
from .streams_group_describe import StreamsGroupDescribeRequest as StreamsGroupDescribeRequest
from .streams_group_describe import StreamsGroupDescribeResponse as StreamsGroupDescribeResponse
from .streams_group_heartbeat import StreamsGroupHeartbeatRequest as StreamsGroupHeartbeatRequest
from .streams_group_heartbeat import StreamsGroupHeartbeatResponse as StreamsGroupHeartbeatResponse
from .sync_group import SyncGroupRequest as SyncGroupRequest
from .sync_group import SyncGroupResponse as SyncGroupResponse
from .txn_offset_commit import TxnOffsetCommitRequest as TxnOffsetCommitRequest
from .txn_offset_commit import TxnOffsetCommitResponse as TxnOffsetCommitResponse
from .unregister_broker import UnregisterBrokerRequest as UnregisterBrokerRequest
from .unregister_broker import UnregisterBrokerResponse as UnregisterBrokerResponse
from .update_features import UpdateFeaturesRequest as UpdateFeaturesRequest
from .update_features import UpdateFeaturesResponse as UpdateFeaturesResponse
from .update_metadata import UpdateMetadataRequest as UpdateMetadataRequest
from .update_metadata import UpdateMetadataResponse as UpdateMetadataResponse
from .update_raft_voter import UpdateRaftVoterRequest as UpdateRaftVoterRequest
from .update_raft_voter import UpdateRaftVoterResponse as UpdateRaftVoterResponse
from .vote import VoteRequest as VoteRequest
from .vote import VoteResponse as VoteResponse
from .write_share_group_state import WriteShareGroupStateRequest as WriteShareGroupStateRequest
from .write_share_group_state import WriteShareGroupStateResponse as WriteShareGroupStateResponse
from .write_txn_markers import WriteTxnMarkersRequest as WriteTxnMarkersRequest
from .write_txn_markers import WriteTxnMarkersResponse as WriteTxnMarkersResponse

def request_message(api_key: int) -> Message: ...
def response_message(api_key: int) -> Message: ...
def message_names() -> list[str]: ...
def module_names() -> list[str]: ...
def names_by_module() -> dict[str, tuple[str, ...]]: ...
def module_name(api_key: ApiKey) -> str: ...
