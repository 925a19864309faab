"""Operations on share partitions' states as wire messages, and their answers.

Each of the five APIs has one operation for each partition that it names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ...common.errors import ErrorCode
from ...coordinator.share.operations import (
    DeleteState,
    InitializeState,
    Operation,
    ReadState,
    ReadStateSummary,
    SharePartitionKey,
    StateAnswer,
    StateBatch,
    WriteState,
)
from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ...runtime.steps import Steps, map_in_steps

if TYPE_CHECKING:
    from ...protocol.codec.message import Message

VERSIONS: Mapping[int, int] = {
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: 0,
    ApiKey.READ_SHARE_GROUP_STATE: 0,
    ApiKey.WRITE_SHARE_GROUP_STATE: 1,
    ApiKey.DELETE_SHARE_GROUP_STATE: 0,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: 1,
}
"""In which brokers send them to each other."""


class _Api(NamedTuple):
    """How one API says what it is about.

    Attributes:
        request, response: the messages.
        topic, partition: what a request has for each.
        topic_result, partition_result: what a response has for each.
        operation: what is requested of a share partition.
        requested: the fields of a partition of a request that say an operation.
        answered: those of a partition of a response that say an answer.
    """

    request: Callable[..., Message]
    response: Callable[..., Message]
    topic: Callable[..., Any]  # each API has structs of its own
    partition: Callable[..., Any]
    topic_result: Callable[..., Any]
    partition_result: Callable[..., Any]
    operation: Callable[..., Operation]
    requested: tuple[str, ...]
    answered: tuple[str, ...]


_INITIALIZE = _Api(
    messages.InitializeShareGroupStateRequest,
    messages.InitializeShareGroupStateResponse,
    messages.InitializeShareGroupStateRequest.InitializeStateData,
    messages.InitializeShareGroupStateRequest.PartitionData,
    messages.InitializeShareGroupStateResponse.InitializeStateResult,
    messages.InitializeShareGroupStateResponse.PartitionResult,
    InitializeState,
    ("state_epoch", "start_offset"),
    (),
)
_READ = _Api(
    messages.ReadShareGroupStateRequest,
    messages.ReadShareGroupStateResponse,
    messages.ReadShareGroupStateRequest.ReadStateData,
    messages.ReadShareGroupStateRequest.PartitionData,
    messages.ReadShareGroupStateResponse.ReadStateResult,
    messages.ReadShareGroupStateResponse.PartitionResult,
    ReadState,
    ("leader_epoch",),
    ("state_epoch", "start_offset"),
)
_WRITE = _Api(
    messages.WriteShareGroupStateRequest,
    messages.WriteShareGroupStateResponse,
    messages.WriteShareGroupStateRequest.WriteStateData,
    messages.WriteShareGroupStateRequest.PartitionData,
    messages.WriteShareGroupStateResponse.WriteStateResult,
    messages.WriteShareGroupStateResponse.PartitionResult,
    WriteState,
    ("state_epoch", "leader_epoch", "start_offset", "delivery_complete_count"),
    (),
)
_DELETE = _Api(
    messages.DeleteShareGroupStateRequest,
    messages.DeleteShareGroupStateResponse,
    messages.DeleteShareGroupStateRequest.DeleteStateData,
    messages.DeleteShareGroupStateRequest.PartitionData,
    messages.DeleteShareGroupStateResponse.DeleteStateResult,
    messages.DeleteShareGroupStateResponse.PartitionResult,
    DeleteState,
    (),
    (),
)
_SUMMARY = _Api(
    messages.ReadShareGroupStateSummaryRequest,
    messages.ReadShareGroupStateSummaryResponse,
    messages.ReadShareGroupStateSummaryRequest.ReadStateSummaryData,
    messages.ReadShareGroupStateSummaryRequest.PartitionData,
    messages.ReadShareGroupStateSummaryResponse.ReadStateSummaryResult,
    messages.ReadShareGroupStateSummaryResponse.PartitionResult,
    ReadStateSummary,
    ("leader_epoch",),
    ("state_epoch", "leader_epoch", "start_offset", "delivery_complete_count"),
)
_BY_KEY: Mapping[int, _Api] = {
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _INITIALIZE,
    ApiKey.READ_SHARE_GROUP_STATE: _READ,
    ApiKey.WRITE_SHARE_GROUP_STATE: _WRITE,
    ApiKey.DELETE_SHARE_GROUP_STATE: _DELETE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _SUMMARY,
}
_BY_OPERATION = {api.operation: api for api in _BY_KEY.values()}


def operations_in(api_key: int, body: Any) -> Steps[list[Operation]]:
    """What a request asks for, one operation for each partition.

    Args:
        api_key: one of the five.
        body: the request, of whichever of them.
    """
    api = _BY_KEY[api_key]
    operations = []
    for topic in body.topics:
        for partition in topic.partitions:
            yield
            fields = {name: getattr(partition, name) for name in api.requested}
            if api is _WRITE:
                fields["batches"] = yield from map_in_steps(_batch, partition.state_batches)
            key = SharePartitionKey(body.group_id, topic.topic_id, partition.partition)
            operations.append(api.operation(key, **fields))
    return operations


def response_of(api_key: int, answers: Mapping[SharePartitionKey, StateAnswer]) -> Steps[Message]:
    """The response with the answers of all partitions."""
    api = _BY_KEY[api_key]
    topics: dict[bytes, list[Any]] = {}
    for key, answer in answers.items():
        result = api.partition_result(
            partition=key.partition,
            error_code=answer.error,
            error_message=answer.message,
        )
        if not answer.error:
            for name in api.answered:
                setattr(result, name, getattr(answer, name))
        if api is _READ:
            result.state_batches = yield from map_in_steps(_read_batch, answer.batches)
        topics.setdefault(key.topic_id, []).append(result)
        yield
    topic_results = yield from map_in_steps(
        lambda each: api.topic_result(topic_id=each[0], partitions=each[1]), topics.items()
    )
    return api.response(results=topic_results)


def request_of(operation: Operation) -> Message:
    """The request for one operation."""
    api = _BY_OPERATION[type(operation)]
    key = operation.key
    partition = api.partition(
        partition=key.partition, **{name: getattr(operation, name) for name in api.requested}
    )
    if isinstance(operation, WriteState):
        partition.state_batches = list(map(_written_batch, operation.batches))
    return api.request(
        group_id=key.group_id,
        topics=[api.topic(topic_id=key.topic_id, partitions=[partition])],
    )


def answer_in(operation: Operation, response: Any) -> StateAnswer:
    """What a response to a request of `request_of` says."""
    api = _BY_OPERATION[type(operation)]
    key = operation.key
    for topic in response.results:
        for result in topic.partitions:
            if topic.topic_id == key.topic_id and result.partition == key.partition:
                if result.error_code:
                    return StateAnswer(ErrorCode(result.error_code), result.error_message)
                fields = {name: getattr(result, name) for name in api.answered}
                if api is _READ:
                    fields["batches"] = list(map(_batch, result.state_batches))
                return StateAnswer(**fields)
    return StateAnswer(ErrorCode.UNKNOWN_SERVER_ERROR, "the partition was not answered")


def _batch(wire: Any) -> StateBatch:
    return StateBatch(wire.first_offset, wire.last_offset, wire.delivery_state, wire.delivery_count)


def _read_batch(batch: StateBatch) -> messages.ReadShareGroupStateResponse.StateBatch:
    return messages.ReadShareGroupStateResponse.StateBatch(**batch._asdict())


def _written_batch(batch: StateBatch) -> messages.WriteShareGroupStateRequest.StateBatch:
    return messages.WriteShareGroupStateRequest.StateBatch(**batch._asdict())
