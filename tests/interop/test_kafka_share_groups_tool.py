"""Kafka's own `kafka-share-groups.sh` side by side with Apache Kafka: answers, and what is stored.

Each command goes to both brokers, and says the same of both. In the end the records of the group
and of its share partitions are the same, too, as Kafka's own tool decodes them in either's files.
Two other tools that look at the cluster are here, with a client that infers Kafka's version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import kafka
import pytest
from support.dump_log_segments import DecodedRecord, decoded_offsets_of_kafka, dump_log_segments
from support.java_tools import JavaTools
from support.share_consumers import set_group
from support.side_by_side import Both

from odradek.common.errors import ErrorCode
from odradek.protocol.messages import (
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
)
from odradek.runtime.rng import uuid_to_text
from odradek.testing.waiting import wait_until
from odradek.tools.conformance.brokers import start_kafka, start_odradek
from odradek.tools.conformance.requests import BY_ID_FROM, batch, numbered, production
from odradek.tools.conformance.talk import Talk
from odradek.tools.conformance.transcript import Transcript

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

TOOL = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
CLUSTER_TOOL = "org.apache.kafka.tools.ClusterTool"
QUORUM_TOOL = "org.apache.kafka.tools.MetadataQuorumCommand"

GROUP, OTHER_GROUP, NEW_GROUP = "workers", "others", "made-by-its-offsets"
"""One that reads, one that did not come to it, and one that is given offsets before members."""
JOBS, NOTES = "jobs", "notes"
PARTITIONS = {JOBS: 2, NOTES: 1}
MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
JOIN, LEAVE = 0, -1
ACCEPT, RELEASE, REJECT = 1, 2, 3
LAST_SESSION_EPOCH = -1
WAIT_MS = 5_000
SECONDS_MAX = 60.0
SETTINGS = {
    "share.coordinator.snapshot.update.records.per.snapshot": "2",
    "group.share.max.session.timeout.ms": "600000",
    "group.share.session.timeout.ms": "600000",
    "group.share.max.record.lock.duration.ms": "600000",
    "group.share.record.lock.duration.ms": "600000",
}
"""No session and no lock runs out, however busy the machine is: that would be stored, too."""
THIRD_RECORD = "2023-11-14T22:13:21.500"
"""Half a second before it: `batch` stamps the first of each with 22:13:20, and counts seconds."""

NOT_COMPARED = {
    "metadatahash": "of the topics with their ids, which are random",
    "assignmenttimestamp": "when that was",
    "createtimestamp": "when that was",
}
"""Fields of records of which only is compared whether there is anything in them, and why."""
GROUP_RECORDS = {str(number) for number in range(10, 16)}
SHARE_STATE_RECORDS = {"0", "1"}


class Worker:
    """A member of a share group by single requests, so that both brokers hear the same.

    Args:
        talk: to one broker.
        topic_ids: of what it reads, by name.
        group: its group.
    """

    def __init__(self, talk: Talk, topic_ids: Mapping[str, bytes], group: str) -> None:
        self._talk = talk
        self._topic_ids = topic_ids
        self._group = group
        self._session_epoch = 0

    def join(self) -> None:
        """Join, and wait until all partitions are assigned."""
        self._talk.settle_quietly(
            self._beat(JOIN, subscribed_topic_names=list(self._topic_ids)),
            until=lambda answer: (
                sum(len(each.partitions) for each in answer.assignment.topic_partitions)
                == sum(PARTITIONS.values())
            ),
        )

    def _beat(self, epoch: int, **fields: Any) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(
            group_id=self._group, member_id=MEMBER, member_epoch=epoch, **fields
        )

    def fetch(self, topic: str, partition: int) -> None:
        """Be handed out all that there is of a partition."""
        request = ShareFetchRequest
        read = request.FetchPartition(partition_index=partition)

        def some() -> bool:
            answer = self._talk.quietly(
                request(
                    **self._of_session(),
                    max_wait_ms=WAIT_MS,
                    min_bytes=1,
                    max_records=500,
                    batch_size=500,
                    topics=[request.FetchTopic(topic_id=self._topic_ids[topic], partitions=[read])],
                )
            )
            return any(
                part.acquired_records for each in answer.responses for part in each.partitions
            )

        wait_until(some, SECONDS_MAX)

    def acknowledge(self, topic: str, partition: int, first: int, *types: int) -> None:
        """Say something of consecutive records."""
        request = ShareAcknowledgeRequest
        said = request.AcknowledgementBatch(
            first_offset=first, last_offset=first + len(types) - 1, acknowledge_types=list(types)
        )
        part = request.AcknowledgePartition(
            partition_index=partition, acknowledgement_batches=[said]
        )
        of_topic = request.AcknowledgeTopic(topic_id=self._topic_ids[topic], partitions=[part])
        answer = self._talk.quietly(request(**self._of_session(), topics=[of_topic]))
        assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE, answer

    def _of_session(self) -> dict[str, Any]:
        epoch, self._session_epoch = self._session_epoch, self._session_epoch + 1
        return {"group_id": self._group, "member_id": MEMBER, "share_session_epoch": epoch}

    def leave(self) -> None:
        """Give back what was handed out, and leave."""
        if self._session_epoch:
            session = {**self._of_session(), "share_session_epoch": LAST_SESSION_EPOCH}
            answer = self._talk.quietly(ShareAcknowledgeRequest(**session))
            assert answer.error_code == ErrorCode.NONE, answer
        assert self._talk.quietly(self._beat(LEAVE)).error_code == ErrorCode.NONE


class Side(NamedTuple):
    """One of the brokers."""

    folder: Path
    talk: Talk
    topic_ids: Mapping[str, bytes]

    def worker(self, group: str = GROUP) -> Worker:
        """A member that has not joined yet."""
        return Worker(self.talk, self.topic_ids, group)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of Kafka's files and of odradek's."""
    return tmp_path_factory.mktemp("kafka"), tmp_path_factory.mktemp("odradek")


@pytest.fixture(scope="module")
def both(kafka_libs: Path, tools: JavaTools, folders: tuple[Path, Path]) -> Iterator[Both]:
    with (
        start_kafka(folders[0], kafka_libs, SETTINGS) as of_kafka,
        start_odradek(folders[1], SETTINGS) as of_odradek,
    ):
        addresses = (of_kafka.bootstrap, of_odradek.bootstrap)
        yield Both(tools, addresses, (TOOL,), ((r"127\.0\.0\.1:\d+ +", "BROKER "),))


@pytest.fixture
def sides(both: Both, folders: tuple[Path, Path]) -> Iterator[tuple[Side, ...]]:
    """Kafka and odradek with the same records in the same topics."""
    with ExitStack() as stack:
        yield tuple(
            prepared(stack.enter_context(Talk(address, GROUP, 1, Transcript())), folder)
            for address, folder in zip(both.addresses, folders, strict=True)
        )


def prepared(talk: Talk, folder: Path) -> Side:
    ids = {topic: talk.create_topic(topic, count) for topic, count in PARTITIONS.items()}
    for topic, partition, counts in ((JOBS, 0, (3, 3)), (JOBS, 1, (4,)), (NOTES, 0, (2,))):
        for count in counts:
            records = production(ids[topic], {partition: batch(*numbered(count))})
            talk.settle_quietly(records, BY_ID_FROM, until=is_appended)
    set_group(f"127.0.0.1:{talk.port}", GROUP)
    side = Side(folder, talk, ids)
    # Once this one has its partitions the coordinator knows the topics.
    talk.wait_for_coordinator(OTHER_GROUP)
    other = side.worker(OTHER_GROUP)
    other.join()
    other.leave()
    return side


def is_appended(answer: Any) -> bool:
    (topic,) = answer.responses
    return [each.error_code for each in topic.partition_responses] == [ErrorCode.NONE]


def read(worker: Worker) -> None:
    """Some of all that a member may do, some of it twice."""
    worker.join()
    worker.fetch(NOTES, 0)
    worker.acknowledge(NOTES, 0, 0, ACCEPT, ACCEPT)
    worker.fetch(JOBS, 0)
    worker.fetch(JOBS, 1)
    worker.acknowledge(JOBS, 0, 0, ACCEPT, ACCEPT, RELEASE)
    worker.acknowledge(JOBS, 0, 3, REJECT, RELEASE)
    worker.fetch(JOBS, 0)
    worker.acknowledge(JOBS, 0, 2, ACCEPT)
    worker.acknowledge(JOBS, 1, 0, RELEASE, ACCEPT, ACCEPT, REJECT)


def test_they_list_describe_reset_and_delete(both: Both, sides: tuple[Side, ...]) -> None:
    workers = [side.worker() for side in sides]
    for worker in workers:
        read(worker)
    while_a_member_reads(both)
    for worker in workers:
        worker.leave()
    when_it_has_left(both)
    offsets_are_reset(both)
    all_is_deleted(both)

    of_kafka, of_odradek = (group_records(both.tools, side) for side in sides)
    assert of_odradek == of_kafka
    assert {kind for kind, *_ in of_kafka} == GROUP_RECORDS
    of_kafka, of_odradek = (share_state_records(both.tools, side) for side in sides)
    assert of_odradek == of_kafka
    assert {kind for kind, *_ in of_kafka} == SHARE_STATE_RECORDS


def while_a_member_reads(both: Both) -> None:
    of_group = ("--group", GROUP)
    assert sorted(both.same("--list")[1].split()) == [OTHER_GROUP, GROUP]
    for states in ("Stable", "empty", "Empty,Stable"):
        both.same("--list", "--state", states)
    both.refused("--list", "--state", "Completing")
    for what in ((), ("--offsets",), ("--members",), ("--state",)):
        both.same("--describe", *of_group, *what)
        both.same("--describe", *of_group, *what, "--verbose")
        both.same("--describe", "--all-groups", *what)
    assert "jobs:0,1;notes:0" in both.same("--describe", *of_group, "--members")[1]

    both.refused("--reset-offsets", *of_group, "--all-topics", "--to-earliest", "--execute")
    both.same("--delete-offsets", *of_group, "--topic", JOBS)
    both.same("--delete", *of_group)
    deleted = both.same("--delete", "--all-groups")[1]
    assert f"These share groups were deleted successfully: '{OTHER_GROUP}'" in deleted


def when_it_has_left(both: Both) -> None:
    of_group = ("--group", GROUP)
    both.same("--list", "--state")
    # What was given back is stored after that was answered.
    both.settled("--describe", *of_group, holds="0          4             2")
    for what in ((), ("--offsets",), ("--members",), ("--state",)):
        both.same("--describe", *of_group, *what, "--verbose")
        both.same("--describe", "--group", "absent", *what)
    both.same("--describe", *of_group, "--group", "absent")


def offsets_are_reset(both: Both) -> None:
    of_group = ("--group", GROUP)
    for how in ("--dry-run", "--execute"):
        both.same("--reset-offsets", *of_group, "--all-topics", "--to-earliest", how)
    both.same("--describe", *of_group)
    topics = ("--topic", f"{JOBS}:0,1", "--topic", NOTES)
    both.same("--reset-offsets", *of_group, *topics, "--to-latest", "--dry-run")
    both.same("--reset-offsets", *of_group, "--topic", f"{JOBS}:1", "--to-latest", "--execute")
    both.same("--describe", *of_group)
    at = ("--to-datetime", THIRD_RECORD)
    reset = both.same("--reset-offsets", *of_group, "--topic", JOBS, *at, "--execute")[1]
    assert [line.split()[-1] for line in reset.splitlines() if JOBS in line] == ["2", "2"]
    both.same("--describe", *of_group, "--verbose")
    for topic in (f"{JOBS}:7", "absent"):
        both.same("--reset-offsets", *of_group, "--topic", topic, "--to-latest", "--execute")

    of_new = ("--group", NEW_GROUP)
    both.same("--reset-offsets", *of_new, "--all-topics", "--to-latest", "--execute")
    for how in ("--dry-run", "--execute"):
        both.same("--reset-offsets", *of_new, "--topic", JOBS, "--to-latest", how)
    both.same("--describe", *of_new)
    both.same("--describe", *of_new, "--state", "--verbose")


def all_is_deleted(both: Both) -> None:
    of_group = ("--group", GROUP)
    both.same("--delete-offsets", *of_group, "--topic", "absent")
    for _ in ("at first", "when they are gone"):
        both.same("--delete-offsets", *of_group, "--topic", NOTES, "--topic", "absent")
    both.same("--describe", *of_group)
    both.same("--delete-offsets", "--group", "absent", "--topic", NOTES)
    both.same("--delete", *of_group, "--group", "absent")
    both.same("--list", "--state")
    assert NEW_GROUP in both.same("--delete", "--all-groups")[1]
    assert both.same("--list")[1] == ""
    both.same("--describe", "--all-groups")


def group_records(tools: JavaTools, side: Side) -> list[DecodedRecord]:
    """What is stored of the groups; of the one that only waits for the topics it is by chance."""
    found = decoded(tools, side, "__consumer_offsets", "--offsets-decoder")
    return [each for each in found if each[1].get("groupid") in (GROUP, NEW_GROUP)]


def share_state_records(tools: JavaTools, side: Side) -> list[DecodedRecord]:
    """What is stored of share partitions, one by one: they come in any order."""
    found = decoded(tools, side, "__share_group_state", "--share-group-state-decoder")
    return sorted(
        (each for each in found if each[1]["groupid"] in (GROUP, NEW_GROUP)),
        key=lambda record: sorted(record[1].items(), key=str),
    )


def decoded(tools: JavaTools, side: Side, topic: str, decoder: str) -> list[DecodedRecord]:
    """What Kafka's tool finds in the files of a topic."""
    dumped = dump_log_segments(tools, sorted(side.folder.glob(f"logs-*/{topic}-0/*.log")), decoder)
    assert dumped.complaints == ""
    names = {uuid_to_text(topic_id): name for name, topic_id in side.topic_ids.items()}
    return [
        (kind, comparable(key, names), version, comparable(value, names))
        for kind, key, version, value in decoded_offsets_of_kafka(dumped.output)
    ]


def comparable(value: Any, names: Mapping[str, str]) -> Any:
    """What is decoded without what each broker makes up; topics by name, and in their order."""
    if isinstance(value, dict):
        if "writetimestamp" in value:
            value["writetimestamp"] -= value["createtimestamp"]
        return {
            name: bool(each) if name in NOT_COMPARED else comparable(each, names)
            for name, each in value.items()
        }
    if isinstance(value, list):
        elements = [comparable(each, names) for each in value]
        is_of_topics = any(isinstance(each, dict) and "topicid" in each for each in elements)
        return sorted(elements, key=lambda each: each["topicid"]) if is_of_topics else elements
    return names.get(value, value) if isinstance(value, str) else value


def test_tools_take_it_for_the_newest_kafka(both: Both) -> None:
    versions = []
    for address in both.addresses:
        consumer = kafka.KafkaConsumer(bootstrap_servers=address)
        versions.append(consumer.config["api_version"])
        consumer.close()
    assert versions == [(4, 3), (4, 3)]

    def said(tool: str, *arguments: str) -> list[str]:
        outputs = []
        for address in both.addresses:
            done = both.tools.run(tool, *arguments, "--bootstrap-server", address)
            assert done.returncode == 0, done
            outputs.append(done.stdout.replace(address.replace(":", " "), "BROKER"))
        return outputs

    for more in ((), ("--include-fenced-brokers",)):
        of_kafka, of_odradek = said(CLUSTER_TOOL, "list-endpoints", *more)
        assert of_odradek == of_kafka
    ids = [each.split() for each in said(CLUSTER_TOOL, "cluster-id")]
    assert [(*words, len(cluster_id)) for *words, cluster_id in ids] == [("Cluster", "ID:", 22)] * 2


@pytest.mark.parametrize("what", ["--status", "--replication"])
def test_the_quorum_tool_is_told_that_there_is_none(both: Both, what: str) -> None:
    of_kafka, of_odradek = both._replace(tool=(QUORUM_TOOL,)).run("describe", what)
    assert of_kafka.code == 0
    assert of_odradek.code == 1
    assert of_odradek.text == ""
    assert (
        "org.apache.kafka.common.errors.UnsupportedVersionException: "
        "The node does not support DESCRIBE_QUORUM"
    ) in of_odradek.fault.splitlines()[0]
