"""DescribeLogDirs (35), versions 1-5: the log directories and the partitions in them (KIP-113).

Behaviour: every directory by its absolute path, with size and lag of the partitions that are
requested, all of them where topics is null. A directory that is offline says
KAFKA_STORAGE_ERROR and nothing else. The lag is how far the log's end is behind the high
watermark, 0 on a leader, and -1 where this broker holds no replica any more. A copy of a
partition that is moving to a directory is described beside its log, as a future replica, with
the offsets that it has still to copy as its lag.
Version notes: 2 is flexible; 3 adds an error for the whole answer; 4 the size of the file
system and what of it can be used (KIP-827); 5 whether the directory is cordoned (KIP-1066).
Departures from Kafka: no directory is cordoned.
"""

from __future__ import annotations

import os

from ...common.errors import ErrorCode
from ...common.topic_partition import TopicPartition
from ...protocol import messages
from ...runtime.steps import Steps
from ...storage.log.log import Log
from ...storage.log_manager.log_directory import LogDirectory
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import in_steps
from ..request.requests import Request

INVALID_OFFSET_LAG = -1


@in_steps
def handle_describe_log_dirs(
    context: HandlerContext, request: Request[messages.DescribeLogDirsRequest]
) -> Steps[messages.DescribeLogDirsResponse]:
    """Describe every directory, with the requested partitions."""
    body = request.body
    if not context.authorize(request, "DESCRIBE", "CLUSTER", CLUSTER_NAME):
        return messages.DescribeLogDirsResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, results=[]
        )
    requested = None
    if body.topics is not None:
        requested = set()
        manager = context.log_manager
        for topic in body.topics:
            yield
            for index in topic.partitions:
                topic_partition = TopicPartition(topic.topic, index)
                # No others: thousands that are unknown would take their time to be freed.
                if manager.directory_of(topic_partition) or manager.future_directory_of(
                    topic_partition
                ):
                    requested.add(topic_partition)
                yield
    answer = messages.DescribeLogDirsResponse()
    for directory in context.log_manager.directories:
        described = yield from _describe(context, directory, requested)
        answer.results.append(described)
    return answer


def _describe(
    context: HandlerContext, directory: LogDirectory, requested: set[TopicPartition] | None
) -> Steps[messages.DescribeLogDirsResponse.DescribeLogDirsResult]:
    if not directory.is_online:
        return _failed(directory)
    try:
        space = os.statvfs(directory.path)
    except OSError as error:
        context.log_manager.disk_failed(directory.path, error)
        return _failed(directory)
    topics = yield from _topics(context, directory, requested)
    return messages.DescribeLogDirsResponse.DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=directory.path,
        topics=topics,
        total_bytes=space.f_frsize * space.f_blocks,
        usable_bytes=space.f_frsize * space.f_bavail,
    )


def _failed(directory: LogDirectory) -> messages.DescribeLogDirsResponse.DescribeLogDirsResult:
    return messages.DescribeLogDirsResponse.DescribeLogDirsResult(
        error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path, topics=[]
    )


def _topics(
    context: HandlerContext, directory: LogDirectory, requested: set[TopicPartition] | None
) -> Steps[list[messages.DescribeLogDirsResponse.DescribeLogDirsTopic]]:
    response = messages.DescribeLogDirsResponse
    topics: dict[str, messages.DescribeLogDirsResponse.DescribeLogDirsTopic] = {}
    for is_future, logs in ((False, directory.logs), (True, directory.futures)):
        for topic_partition in sorted(logs if requested is None else requested & logs.keys()):
            yield
            log = logs.get(topic_partition)
            if log is None:
                continue  # it went away meanwhile
            name, index = topic_partition
            if name not in topics:
                topics[name] = response.DescribeLogDirsTopic(name=name, partitions=[])
            topics[name].partitions.append(
                response.DescribeLogDirsPartition(
                    partition_index=index,
                    partition_size=log.size,
                    offset_lag=_lag(context, topic_partition, log, is_future=is_future),
                    is_future_key=is_future,
                )
            )
    return list(topics.values())


def _lag(
    context: HandlerContext, topic_partition: TopicPartition, log: Log, *, is_future: bool
) -> int:
    partition = context.replica_manager.get_partition(topic_partition)
    if partition is None:
        return INVALID_OFFSET_LAG
    if is_future:
        return partition.log_end_offset - log.log_end_offset
    return max(partition.high_watermark - log.log_end_offset, 0)
