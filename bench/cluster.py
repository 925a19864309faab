"""The cluster around a target: topics made for one load, their leaders, coordinators."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..common.errors import ErrorCode
from ..common.sentinels import EARLIEST_TIMESTAMP, ZERO_UUID
from ..protocol import messages
from ..protocol.api_keys import ApiKey
from .errors import BenchError
from .loads.wire import Wire, check, refused
from .target import BenchTarget

NAME_PREFIX = "odradek-bench-"
"""What the names of all topics, groups and transactional ids begin with."""
RUN_VARIABLE = "ODRADEK_BENCH_RUN"
"""Environment: what the names of one run have in common, so that it can remove them at its end."""

ADMIN_MS_MAX = 30_000
READY_SECONDS_MAX = 30.0
LOOK_SECONDS = 0.02
DEFAULT_REPLICATION_FROM = 4
"""The first version of CreateTopics by which a topic gets the broker's own replication factor."""
DESCRIBE_GROUPS_NEWEST = 5
"""The last version in which a group that nobody knows is no error."""
NOT_YET = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)
"""Errors that a cluster answers while it creates a topic."""

_numbers = itertools.count(1)


class LoadTopic(NamedTuple):
    """A topic of one load.

    Attributes:
        name: its name.
        id: its id; zeros where the broker has none.
        partitions: those that one broker leads, partition 0 among them.
        host: of that broker.
        port: of that broker.
    """

    name: str
    id: bytes
    partitions: tuple[int, ...]
    host: str
    port: int


def run_name() -> str:
    """What the names of this run begin with."""
    return NAME_PREFIX + os.environ.get(RUN_VARIABLE, str(os.getpid()))


def new_name() -> str:
    """A name for a topic, group or transactional id that nobody else has."""
    return f"{run_name()}-{os.getpid()}-{next(_numbers)}"


class TargetCluster:
    """Connections to the brokers of a target's cluster; a context manager that closes its own.

    Args:
        target: the broker to begin with.

    Raises:
        BenchError: it cannot be reached.
    """

    def __init__(self, target: BenchTarget) -> None:
        self.target = target
        self._tls = target.ssl_context()
        self.wire = Wire(target.host, target.port, self._tls)

    def connect(self, host: str | None = None, port: int | None = None) -> Wire:
        """A new connection, by default to the target itself."""
        return Wire(
            host or self.target.host, port or self.target.port, self._tls, self.wire.versions
        )

    def connect_leader(self, topic: LoadTopic) -> Wire:
        """A new connection to the broker that leads a topic's partitions."""
        return self.connect(topic.host, topic.port)

    @contextmanager
    def topic(self, partitions: int = 1) -> Iterator[LoadTopic]:
        """A topic that lives as long as this.

        Args:
            partitions: how many it has.

        Raises:
            BenchError: it could not be made.
        """
        name = new_name()
        try:
            yield self._made(name, partitions)
        finally:
            self.delete_topics([name])

    def coordinator(self, key: str, key_type: int) -> Wire:
        """A new connection to the coordinator of a group (0) or transactional id (1).

        Raises:
            BenchError: there is none in time.
        """
        version = self.wire.version(ApiKey.FIND_COORDINATOR)
        request = messages.FindCoordinatorRequest(key_type=key_type)
        if version >= 4:
            request.coordinator_keys = [key]
        else:
            request.key = key

        def found() -> Any:
            answer = self.wire.ask(request, version)
            return answer.coordinators[0] if version >= 4 else answer

        what = "FindCoordinator for a " + ("transactional id" if key_type else "group")
        answer = self.when_ready(found, lambda each: each.error_code, what)
        return self.connect(answer.host, answer.port)

    def group_coordinator(self, group: str) -> Wire:
        """A new connection to a group's coordinator, once that knows that it is.

        Raises:
            BenchError: it is not ready in time.
        """
        wire = self.coordinator(group, 0)
        version = wire.version(ApiKey.DESCRIBE_GROUPS, DESCRIBE_GROUPS_NEWEST)
        request = messages.DescribeGroupsRequest(groups=[group])
        try:
            self.when_ready(
                lambda: wire.ask(request, version),
                lambda answer: answer.groups[0].error_code,
                "DescribeGroups",
            )
        except BaseException:
            wire.close()
            raise
        return wire

    def when_ready(self, ask: Callable[[], Any], error_of: Callable[[Any], int], what: str) -> Any:
        """Ask again and again until the answer is no longer that something is not there yet.

        Raises:
            BenchError: it was refused, or was not ready in time.
        """
        deadline = time.monotonic() + READY_SECONDS_MAX
        while True:
            answer = ask()
            code = error_of(answer)
            if not code:
                return answer
            if code not in NOT_YET or time.monotonic() > deadline:
                raise refused(code, what, self.wire.peer)
            time.sleep(LOOK_SECONDS)

    def delete_topics(self, names: list[str]) -> None:
        """Remove topics; those that are not there are no failure.

        Raises:
            BenchError: the broker refused.
        """
        if not names:
            return
        with self._controller() as wire:
            version = wire.version(ApiKey.DELETE_TOPICS)
            request = messages.DeleteTopicsRequest(timeout_ms=ADMIN_MS_MAX)
            if version >= 6:
                state = messages.DeleteTopicsRequest.DeleteTopicState
                request.topics = [state(name=name) for name in names]
            else:
                request.topic_names = names
            gone = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,)
            for each in wire.ask(request, version).responses:
                check(each.error_code, f"DeleteTopics for {each.name}", wire.peer, gone)

    def topics_named(self, prefix: str) -> list[str]:
        """The names of the cluster's topics that begin with this."""
        answer = self._metadata(None)
        return [each.name for each in answer.topics if each.name.startswith(prefix)]

    def close(self) -> None:
        """Close its own connection."""
        self.wire.close()

    def __enter__(self) -> TargetCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _made(self, name: str, partitions: int) -> LoadTopic:
        with self._controller() as wire:
            version = wire.version(ApiKey.CREATE_TOPICS)
            topic = messages.CreateTopicsRequest.CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=-1 if version >= DEFAULT_REPLICATION_FROM else 1,
            )
            request = messages.CreateTopicsRequest(topics=[topic], timeout_ms=ADMIN_MS_MAX)
            made = wire.ask(request, version).topics[0]
            if made.error_code:
                why = f" ({made.error_message})" if made.error_message else ""
                raise BenchError(f"{refused(made.error_code, 'CreateTopics', wire.peer)}{why}")
        return self._when_led(name, partitions)

    def _when_led(self, name: str, partitions: int) -> LoadTopic:
        def error_of(answer: Any) -> int:
            topic = answer.topics[0]
            codes = [topic.error_code, *(each.error_code for each in topic.partitions)]
            if len(topic.partitions) < partitions:
                codes.append(ErrorCode.LEADER_NOT_AVAILABLE)
            return next((code for code in codes if code), 0)

        answer = self.when_ready(lambda: self._metadata([name]), error_of, f"Metadata of {name}")
        (topic,) = answer.topics
        leaders = {each.partition_index: each.leader_id for each in topic.partitions}
        leader = next(each for each in answer.brokers if each.node_id == leaders[0])
        led = sorted(index for index, node_id in leaders.items() if node_id == leader.node_id)
        made = LoadTopic(name, topic.topic_id or ZERO_UUID, tuple(led), leader.host, leader.port)
        self._wait_until_it_leads(made)
        return made

    def _wait_until_it_leads(self, topic: LoadTopic) -> None:
        """A leader may hear of that later than the one who tells clients."""
        request = messages.ListOffsetsRequest
        named = [
            request.ListOffsetsPartition(partition_index=each, timestamp=EARLIEST_TIMESTAMP)
            for each in topic.partitions
        ]
        of_topic = request.ListOffsetsTopic(name=topic.name, partitions=named)
        with self.connect_leader(topic) as wire:

            def error_of(answer: Any) -> int:
                codes = [each.error_code for each in answer.topics[0].partitions]
                return next((code for code in codes if code), 0)

            what = f"ListOffsets of {topic.name}"
            self.when_ready(lambda: wire.ask(request(topics=[of_topic])), error_of, what)

    def _metadata(self, names: list[str] | None) -> Any:
        topic_of = messages.MetadataRequest.MetadataRequestTopic
        topics = None if names is None else [topic_of(name=name) for name in names]
        if topics is None and self.wire.version(ApiKey.METADATA) == 0:
            topics = []  # in version 0 an empty list names all
        return self.wire.ask(messages.MetadataRequest(topics=topics))

    def _controller(self) -> Wire:
        """A connection to the controller, which alone makes topics in a cluster with ZooKeeper."""
        answer = self._metadata([])
        for broker in answer.brokers:
            if broker.node_id == answer.controller_id:
                return self.connect(broker.host, broker.port)
        return self.connect()
