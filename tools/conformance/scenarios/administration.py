"""Log directories, elections, reassignments; and SASL on a listener that has none."""

from __future__ import annotations

from typing import Any

from ....protocol.api_keys import ApiKey
from ....protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    DescribeLogDirsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from ..requests import TIMEOUT_MS, metadata_of
from ..scenario import scenario
from ..talk import Talk

PREFERRED, UNCLEAN = 0, 1

# -- log directories -----------------------------------------------------------------------


def describing_logs(topic: str, *partitions: int) -> DescribeLogDirsRequest:
    """A request for where the logs of a topic lie."""
    of_topic = DescribeLogDirsRequest.DescribableLogDirTopic
    return DescribeLogDirsRequest(topics=[of_topic(topic=topic, partitions=list(partitions))])


def with_logs(answer: Any) -> Any:
    """The answer with the directories that hold what was requested, whichever they are."""
    answer.results = [each for each in answer.results if each.topics or each.error_code]
    return answer


@scenario(ApiKey.DESCRIBE_LOG_DIRS)
def log_of_a_topic_is_found(talk: Talk) -> None:
    talk.create_topic(talk.name())
    talk.produce(talk.name(), count=3)
    with_logs(talk.ask(describing_logs(talk.name(), 0), talk.version))


@scenario(ApiKey.DESCRIBE_LOG_DIRS)
def log_directories_are_listed(talk: Talk) -> None:
    answer = talk.ask(DescribeLogDirsRequest(topics=[]), talk.version)
    for number, each in enumerate(sorted(answer.results, key=lambda each: str(each.log_dir))):
        each.log_dir = f"logs-{number}"


@scenario(ApiKey.DESCRIBE_LOG_DIRS)
def log_that_is_not_there_is_requested(talk: Talk) -> None:
    talk.create_topic(talk.name())
    with_logs(talk.ask(describing_logs(talk.name(), 7), talk.version))
    with_logs(talk.ask(describing_logs("absent-topic", 0), talk.version))
    with_logs(talk.ask(describing_logs("a/b", 0), talk.version))


def moving(path: str, topic: str, *partitions: int) -> AlterReplicaLogDirsRequest:
    """A request to move logs into a directory."""
    of_topic = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic
    to = AlterReplicaLogDirsRequest.AlterReplicaLogDir(
        path=path, topics=[of_topic(name=topic, partitions=list(partitions))]
    )
    return AlterReplicaLogDirsRequest(dirs=[to])


@scenario(
    ApiKey.ALTER_REPLICA_LOG_DIRS,
    cases={"no directory of its": "/no/such/folder", "empty": "", "relative": "somewhere"},
)
def logs_are_moved_to(talk: Talk, path: str) -> None:
    talk.create_topic(talk.name())
    talk.ask(moving(path, talk.name(), 0), talk.version)


@scenario(ApiKey.ALTER_REPLICA_LOG_DIRS)
def log_is_moved_to_the_other_directory(talk: Talk) -> None:
    talk.create_topic(talk.name())
    talk.produce(talk.name(), count=3)
    directories = talk.quietly(describing_logs(talk.name(), 0)).results
    (to,) = [each.log_dir for each in directories if not each.topics]
    talk.ask(moving(to, talk.name(), 0), talk.version)

    def has_moved(answer: Any) -> bool:
        at = [each.log_dir for each in with_logs(answer).results]
        return bool(at == [to])

    talk.settled(describing_logs(talk.name(), 0), until=has_moved)


@scenario(ApiKey.ALTER_REPLICA_LOG_DIRS)
def log_that_is_not_there_is_moved(talk: Talk) -> None:
    talk.create_topic(talk.name())
    to = talk.quietly(describing_logs(talk.name(), 0)).results[0].log_dir
    talk.ask(moving(to, talk.name(), 7), talk.version)
    talk.ask(moving(to, "a/b", 0), talk.version)


@scenario(ApiKey.ALTER_REPLICA_LOG_DIRS)
def nothing_is_moved(talk: Talk) -> None:
    talk.ask(AlterReplicaLogDirsRequest(dirs=[]), talk.version)


# -- elections -----------------------------------------------------------------------------


def electing(topic: str | None, *partitions: int, kind: int = PREFERRED) -> ElectLeadersRequest:
    """A request for elections in a topic, or everywhere (None)."""
    of_topic = ElectLeadersRequest.TopicPartitions
    requested = None if topic is None else [of_topic(topic=topic, partitions=list(partitions))]
    return ElectLeadersRequest(
        election_type=kind, topic_partitions=requested, timeout_ms=TIMEOUT_MS
    )


@scenario(ApiKey.ELECT_LEADERS)
def preferred_leader_leads_already(talk: Talk) -> None:
    talk.create_topic(talk.name(), 2)
    talk.ask(electing(talk.name(), 0, 1), talk.version)


@scenario(ApiKey.ELECT_LEADERS, "1-")
def leader_needs_no_unclean_election(talk: Talk) -> None:
    talk.create_topic(talk.name())
    talk.ask(electing(talk.name(), 0, kind=UNCLEAN), talk.version)


@scenario(ApiKey.ELECT_LEADERS)
def partitions_to_elect_in_are_not_there(talk: Talk) -> None:
    talk.create_topic(talk.name())
    talk.ask(electing(talk.name(), 0, 7), talk.version)
    talk.ask(electing("absent-topic", 0), talk.version)


@scenario(ApiKey.ELECT_LEADERS)
def every_partition_is_elected_in(talk: Talk) -> None:
    talk.ask(electing(None), talk.version)


@scenario(ApiKey.ELECT_LEADERS, "1-", cases={"2": 2, "-1": -1})
def kind_of_election_is_unknown(talk: Talk, kind: int) -> None:
    talk.create_topic(talk.name())
    talk.refused(electing(talk.name(), 0, kind=kind), talk.version)


@scenario(ApiKey.ELECT_LEADERS)
def nothing_is_elected(talk: Talk) -> None:
    request = ElectLeadersRequest(election_type=PREFERRED, topic_partitions=[], timeout_ms=1000)
    talk.ask(request, talk.version)


# -- reassignments -------------------------------------------------------------------------


def reassigning(
    topic: str, replicas: dict[int, list[int] | None], **fields: Any
) -> AlterPartitionReassignmentsRequest:
    """A request to give partitions other replicas, or to give that up (None)."""
    of_partition = AlterPartitionReassignmentsRequest.ReassignablePartition
    of_topic = AlterPartitionReassignmentsRequest.ReassignableTopic(
        name=topic,
        partitions=[
            of_partition(partition_index=index, replicas=brokers)
            for index, brokers in replicas.items()
        ],
    )
    return AlterPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=[of_topic], **fields)


@scenario(
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    cases={
        "those that it has": [1],
        "none to be given up": None,
        "nobody": [],
        "a broker that is not there": [9],
        "one more that is not there": [1, 9],
        "one twice": [1, 1],
        "a negative one": [-1],
    },
)
def replicas_are_to_be(talk: Talk, replicas: list[int] | None) -> None:
    talk.create_topic(talk.name())
    talk.ask(reassigning(talk.name(), {0: replicas}), talk.version)
    talk.ask(metadata_of(talk.name()))


@scenario(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
def partitions_to_reassign_are_not_there(talk: Talk) -> None:
    talk.create_topic(talk.name())
    talk.ask(reassigning(talk.name(), {0: [1], 7: [1], -1: None}), talk.version)
    talk.ask(reassigning("absent-topic", {0: [1]}), talk.version)
    talk.ask(reassigning("a/b", {0: [1]}), talk.version)


@scenario(ApiKey.ALTER_PARTITION_REASSIGNMENTS, "1-", cases={"more": [1, 9], "as many": [1]})
def number_of_replicas_may_not_change(talk: Talk, replicas: list[int]) -> None:
    talk.create_topic(talk.name())
    request = reassigning(talk.name(), {0: replicas}, allow_replication_factor_change=False)
    talk.ask(request, talk.version)


@scenario(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
def nothing_is_reassigned(talk: Talk) -> None:
    talk.ask(AlterPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=[]), talk.version)


@scenario(ApiKey.LIST_PARTITION_REASSIGNMENTS)
def reassignments_are_listed(talk: Talk) -> None:
    of_topic = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    talk.create_topic(talk.name())
    for topics in (
        None,
        [],
        [of_topic(name=talk.name(), partition_indexes=[0, 7])],
        [of_topic(name="absent-topic", partition_indexes=[0])],
    ):
        talk.ask(ListPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=topics))


# -- SASL ----------------------------------------------------------------------------------


@scenario(ApiKey.SASL_HANDSHAKE, cases={"plain": "PLAIN", "unknown": "MAGIC", "empty": ""})
def mechanism_is_proposed(talk: Talk, mechanism: str) -> None:
    talk.refused(SaslHandshakeRequest(mechanism=mechanism), talk.version)


@scenario(ApiKey.SASL_AUTHENTICATE, cases={"a password": b"\0user\0password", "nothing": b""})
def credentials_are_shown(talk: Talk, credentials: bytes) -> None:
    talk.refused(SaslAuthenticateRequest(auth_bytes=credentials), talk.version)
