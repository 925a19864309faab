"""A heartbeat of a streams group's member: what it says, what is refused of it, its answer.

Source: KIP-1071; Kafka 4.3's GroupCoordinatorService (what a request must say, and what is not
there yet: static members, regular expressions, offsets of tasks, warm-up tasks) and
GroupMetadataManager (who may go on in which epoch, which tasks there are).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from typing import NamedTuple

from ....common.errors import ErrorCode, KafkaError
from ....runtime.steps import Steps
from ..consumer.topics import TopicsImage
from ..records import EncodedValue, fits_string
from ..refusals import fenced_epoch, invalid_request, require_text, unknown_member
from .configured_topology import ConfiguredTopology, Status, configure
from .group import StreamsGroup, StreamsGroupImage
from .member import JOIN_EPOCH, NO_TIMEOUT, StreamsMember, UserEndpoint
from .tasks import OwnedTasks, Tasks, TaskSets, is_within
from .topology import InternalTopic, Topology

LEAVE_STATIC_EPOCH = -2
FIRST_COMMIT_VERSION_WITH_EPOCHS = 9
"""OffsetCommit before this one speaks of generations, which such members do not have."""


class FoundTopology(NamedTuple):
    """What a topology comes to with the topics of one moment.

    Attributes:
        required: the names of the topics that have to be there.
        configured: what it comes to, or why it never comes to anything.
    """

    topology: Topology
    topics: TopicsImage
    required: Set[str]
    configured: ConfiguredTopology | KafkaError


def find_topology(topology: Topology, topics: TopicsImage) -> Steps[FoundTopology]:
    """See what a topology comes to."""
    required: set[str] = set()
    for subtopology in topology.subtopologies.values():
        for name in subtopology.sources:
            yield
            required.add(name)
        for topic in subtopology.changelog_topics:
            yield
            required.add(topic.name)
    configured: ConfiguredTopology | KafkaError
    try:
        configured = yield from configure(topology, topics)
    except KafkaError as never:
        configured = never.as_value()
    return FoundTopology(topology, topics, required, configured)


class StreamsHeartbeat(NamedTuple):
    """A heartbeat request; None is "as in the last one".

    Attributes:
        member_epoch: 0 to join, -1 to leave.
        endpoint_epoch: of what the client knows of who can be asked for what.
        instance_id: of a static member, which there are none of.
        active, standby, warmup: what the client says that it has.
        client_tags: in order of their names.
        has_task_offsets: whether it tells how far its tasks are.
        encoded: what it may lead to in the log, encoded before.
        found: what the group's topology comes to, as was found before.
    """

    group_id: str
    member_id: str
    member_epoch: int
    endpoint_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = NO_TIMEOUT
    topology: Topology | None = None
    active: TaskSets | None = None
    standby: TaskSets | None = None
    warmup: TaskSets | None = None
    process_id: str | None = None
    user_endpoint: UserEndpoint | None = None
    client_tags: tuple[tuple[str, str], ...] | None = None
    has_task_offsets: bool = False
    shutdown_application: bool = False
    client_id: str = ""
    client_host: str = ""
    encoded: Sequence[EncodedValue] = ()
    found: FoundTopology | None = None

    @property
    def owned(self) -> Tasks | None:
        """What the client says that it has; None if it did not say."""
        if self.active is None or self.standby is None or self.warmup is None:
            return None
        return Tasks(self.active, self.standby, self.warmup)


class EndpointPartitions(NamedTuple):
    """Which partitions of which topics an instance can be asked for."""

    endpoint: UserEndpoint
    active: tuple[tuple[str, tuple[int, ...]], ...]
    standby: tuple[tuple[str, tuple[int, ...]], ...]


class StreamsHeartbeatAnswer(NamedTuple):
    """The answer to a heartbeat.

    Attributes:
        assigned: what the member is to run from now on; None where that has not changed.
        endpoints: of all members; None where the client knows them.
        missing_topics: internal topics that are to be made; not of the answer itself.
        creation_failures: why some of those could not be made lately.
    """

    error: ErrorCode
    error_message: str | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    statuses: tuple[Status, ...] = ()
    assigned: OwnedTasks | None = None
    endpoint_epoch: int = 0
    endpoints: tuple[EndpointPartitions, ...] | None = None
    missing_topics: tuple[InternalTopic, ...] = ()
    creation_failures: tuple[tuple[str, str], ...] = ()


StreamsHeartbeatCallback = Callable[[StreamsHeartbeatAnswer], None]


# -- what is refused ------------------------------------------------------------------------


def check_request(request: StreamsHeartbeat) -> None:
    """Refuse what no group would take.

    Raises:
        KafkaError: INVALID_REQUEST or STREAMS_INVALID_TOPOLOGY.
    """
    _check_supported(request)
    for what, text in (
        ("MemberId", request.member_id),
        ("GroupId", request.group_id),
        ("RackId", request.rack_id),
    ):
        require_text(what, text)
    epoch = request.member_epoch
    if epoch == JOIN_EPOCH:
        _check_first(request)
    elif epoch == LEAVE_STATIC_EPOCH:
        raise invalid_request("InstanceId can't be null.")
    elif epoch < LEAVE_STATIC_EPOCH:
        raise invalid_request(f"MemberEpoch is {epoch}, but must be greater than or equal to -2.")
    kinds = (request.active, request.standby, request.warmup)
    if any(tasks is not None for tasks in kinds) and any(tasks is None for tasks in kinds):
        raise invalid_request("If one task-type is non-null, all must be non-null.")
    if epoch != JOIN_EPOCH and request.topology is not None:
        raise invalid_request("Topology can only be provided when (re-)joining.")
    texts = [request.group_id, request.member_id, request.rack_id, request.process_id]
    if request.user_endpoint is not None:
        texts.append(request.user_endpoint.host)
    if not all(text is None or fits_string(text) for text in texts):
        raise too_long_text()


def check_tags(request: StreamsHeartbeat) -> Steps[None]:
    """Refuse tags that no record can hold.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    for name, text in request.client_tags or ():
        yield
        if not (fits_string(name) and fits_string(text)):
            raise too_long_text()


def too_long_text() -> KafkaError:
    """INVALID_REQUEST, for what no record can hold."""
    return invalid_request("A text is longer than the group's records can hold.")


def _check_supported(request: StreamsHeartbeat) -> None:
    if request.instance_id is not None:
        raise invalid_request("Static membership is not yet supported.")
    if request.has_task_offsets:
        raise invalid_request("TaskOffsets are not supported yet.")
    if request.warmup:
        raise invalid_request("WarmupTasks are not supported yet.")
    if request.topology is not None and any(
        each.source_topic_regex for each in request.topology.subtopologies.values()
    ):
        raise invalid_request("Regular expressions for source topics are not supported yet.")


def _check_first(request: StreamsHeartbeat) -> None:
    if request.rebalance_timeout_ms == NO_TIMEOUT:
        raise invalid_request("RebalanceTimeoutMs must be provided in first request.")
    for what, tasks in (
        ("ActiveTasks", request.active),
        ("StandbyTasks", request.standby),
        ("WarmupTasks", request.warmup),
    ):
        if tasks is None or tasks:
            raise invalid_request(f"{what} must be empty when (re-)joining.")
    if request.topology is None:
        raise invalid_request("Topology must be non-null when (re-)joining.")
    for subtopology in request.topology.subtopologies.values():
        for topic in subtopology.changelog_topics:
            if topic.partitions:
                raise KafkaError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {topic.name} must have an undefined partition count, but it "
                    f"is set to {topic.partitions}.",
                )


def check_epoch(member: StreamsMember, request: StreamsHeartbeat) -> None:
    """Refuse a heartbeat of another epoch than the member's.

    One of the epoch before is taken if the member has no more than it may: the answer with the new
    epoch may have been lost. One that joins again is taken in any epoch.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH.
    """
    epoch = request.member_epoch
    if epoch in (JOIN_EPOCH, member.member_epoch):
        return
    owned = request.owned
    if (
        member.member_epoch > epoch == member.previous_member_epoch
        and owned is not None
        and is_within(owned.active, member.assigned.active)
        and is_within(owned.standby, member.assigned.standby)
        and is_within(owned.warmup, member.assigned.warmup)
    ):
        return
    raise fenced_epoch("streams", epoch, member.member_epoch)


def check_tasks(configured: ConfiguredTopology, request: StreamsHeartbeat) -> None:
    """Refuse tasks that the topology has not.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    subtopologies = configured.subtopologies or {}
    for tasks in (request.active, request.standby, request.warmup):
        for subtopology_id, numbers in (tasks or {}).items():
            if subtopology_id not in subtopologies:
                raise invalid_request(
                    f"Subtopology {subtopology_id} does not exist in the topology."
                )
            task_count = subtopologies[subtopology_id].task_count
            for number in numbers:
                if not 0 <= number < task_count:
                    raise invalid_request(
                        f"Task {number} for subtopology {subtopology_id} is invalid. Number of "
                        f"tasks for this subtopology: {task_count}"
                    )


def check_commit(
    group: StreamsGroup,
    member_id: str,
    group_instance_id: str | None,
    epoch: int,
    api_version: int,
    partitions: Iterable[tuple[str, int]] = (),
    *,
    is_transactional: bool = False,
) -> None:
    """Refuse a commit by the wrong client, or for tasks that it did not have in its epoch.

    Source: Kafka's StreamsGroup.validateOffsetCommit.

    Args:
        api_version: of OffsetCommit; it does not count for a commit in a transaction.
        partitions: topics and partitions.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION or STALE_MEMBER_EPOCH.
    """
    if epoch < 0 and not group.members:
        return  # from an admin client
    if is_transactional and epoch == -1 and member_id == "" and group_instance_id is None:
        return  # from a producer that does not say whose offsets it commits
    member = group.members.get(member_id)
    if member is None:
        raise unknown_member(group.group_id, member_id)
    if not is_transactional and api_version < FIRST_COMMIT_VERSION_WITH_EPOCHS:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if epoch == member.member_epoch:
        return
    topology = group.now.topology
    if epoch > member.member_epoch or topology is None:
        raise stale_epoch(member, epoch)
    for topic, partition in partitions:
        subtopology_id = topology.reader_of(topic)
        since = None
        if subtopology_id is not None:
            since = member.assignment_epoch(subtopology_id, partition)
        if since is None or epoch < since:
            raise stale_epoch(member, epoch)


def check_fetch(group: StreamsGroup, member_id: str | None, epoch: int) -> None:
    """Refuse to tell offsets to a member of another epoch than its own.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID or STALE_MEMBER_EPOCH.
    """
    if member_id is None and epoch < 0:
        return
    member = group.replicated().members.get(member_id or "")
    if member is None:
        raise unknown_member(group.group_id, member_id or "")
    if epoch != member.member_epoch:
        raise stale_epoch(member, epoch)


def stale_epoch(member: StreamsMember, epoch: int) -> KafkaError:
    """STALE_MEMBER_EPOCH, with a text that says which is known."""
    return KafkaError(
        ErrorCode.STALE_MEMBER_EPOCH,
        f"The received member epoch {epoch} does not match the expected member epoch "
        f"{member.member_epoch}.",
    )


# -- who can be asked for what --------------------------------------------------------------


def endpoints_of(
    image: StreamsGroupImage, configured: ConfiguredTopology, topics: TopicsImage
) -> tuple[EndpointPartitions, ...]:
    """Which partitions each member that has an endpoint can be asked for.

    Source: Kafka's EndpointToPartitionsManager.
    """
    result = []
    for member in image.members.values():
        if member.user_endpoint is not None:
            tasks = member.assigned.without_epochs()
            result.append(
                EndpointPartitions(
                    member.user_endpoint,
                    _partitions(tasks.active, configured, topics),
                    _partitions(tasks.standby, configured, topics),
                )
            )
    return tuple(result)


def _partitions(
    tasks: TaskSets, configured: ConfiguredTopology, topics: TopicsImage
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The partitions of the sources of tasks; a topic may have fewer than there are tasks."""
    result = []
    for subtopology_id, numbers in tasks.items():
        subtopology = (configured.subtopologies or {}).get(subtopology_id)
        for name in () if subtopology is None else dict.fromkeys(subtopology.subtopology.sources):
            topic = topics.find(name)
            if topic is not None:
                result.append((name, tuple(sorted(numbers)[: topic.partition_count])))
    return tuple(result)
