"""Produce (0), versions 3-13: append record batches to partitions led here.

Behaviour: one batch of format v2 per partition; each partition succeeds or fails on its
own. Answered after the append is on disk's page cache (acks 0 and 1), or on all in-sync
replicas (acks -1). With acks=0 nothing is answered; if a partition failed, the
connection is closed so that the client looks for its leader again.
A batch that begins a transaction in a partition waits for the transaction's coordinator
(KIP-890).
Version notes: 7 allows zstd; 8 answers which records were refused; 10 tells who leads where
this broker does not (KIP-951); 11 knows TRANSACTION_ABORTABLE; from 12 on partitions join a
transaction by being written to; 13 names topics by id.
Departures from Kafka: versions 0-2 are advertised, because librdkafka looks for them
before it uses newer ones (KIP-896), and refused, both as Kafka 4 does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...common.errors import ErrorCode, KafkaError
from ...common.topic_partition import TopicPartition
from ...protocol import messages
from ...replication.append import PartitionResponse
from ...runtime.steps import Steps, clear_in_steps, in_batches, run_at_once
from ..request.context import HandlerContext
from ..request.outcomes import AT_FLUSH, PARKED, AtFlush, Parked, Stepwise
from ..request.produce_appends import (
    PARTITIONS_PER_PIECE,
    append_entries,
    append_entries_in_steps,
)
from ..request.produce_rules import (
    FIRST_VERSION_WITH_TOPIC_IDS,
    PartitionKey,
    is_transactional,
    partition_key,
    produce_response,
    refusal_of,
)
from ..request.requests import Request
from ..request.transactional_produce import append_transactional


def handle_produce(
    context: HandlerContext, request: Request[messages.ProduceRequest]
) -> AtFlush | Parked | Stepwise[messages.ProduceResponse]:
    """Stage every partition's batch; the flush of this pass answers.

    What begins a transaction may first have to be verified, and is answered later.
    """
    if request.is_long:
        return Stepwise(_produce_in_steps(context, request))
    topics = request.body.topic_data
    in_transaction = any(map(_is_in_transaction, topics))
    if in_transaction and not _may_use_transaction(context, request):
        return _refuse_all(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    entries: dict[TopicPartition, memoryview] = {}
    refused: dict[PartitionKey, PartitionResponse] = {}
    names = [_take_topic(context, request, topic, entries, refused) for topic in topics]

    def on_complete(results: dict[TopicPartition, PartitionResponse]) -> None:
        _answer(context, request, names, results, refused)

    if in_transaction:
        try:
            work = append_transactional(context, request, entries, on_complete)
            return AT_FLUSH if run_at_once(work) else PARKED
        except KafkaError as refusal_of_all:
            return _refuse_all(request, refusal_of_all.code)
    append_entries(context, request, entries, on_complete)
    return AT_FLUSH


def _is_in_transaction(topic: messages.ProduceRequest.TopicProduceData) -> bool:
    return any(is_transactional(partition.records) for partition in topic.partition_data)


def _may_use_transaction(
    context: HandlerContext, request: Request[messages.ProduceRequest]
) -> bool:
    transactional_id = request.body.transactional_id
    return transactional_id is not None and context.authorize(
        request, "WRITE", "TRANSACTIONAL_ID", transactional_id
    )


def _take_topic(
    context: HandlerContext,
    request: Request[messages.ProduceRequest],
    topic: messages.ProduceRequest.TopicProduceData,
    entries: dict[TopicPartition, memoryview],
    refused: dict[PartitionKey, PartitionResponse],
) -> str | None:
    """Add a topic's partitions to those to append to, or to those refused; returns its name."""
    name = _topic_name(context, request, topic, refused)
    if name is not None:
        for partition in topic.partition_data:
            records = partition.records
            refusal = refusal_of(
                request.api_version, records, request.body.transactional_id is not None
            )
            if refusal is not None:
                refused[partition_key(request.api_version, topic, partition.index)] = refusal
            else:
                assert records is not None
                entries[TopicPartition(name, partition.index)] = records
    return name


def _produce_in_steps(
    context: HandlerContext, request: Request[messages.ProduceRequest]
) -> Steps[messages.ProduceResponse | Parked]:
    """Append to many partitions, some at a time, and answer when the last is appended to."""
    pieces = []
    in_transaction = False
    for piece in _pieces(request.body):
        pieces.append(piece)
        in_transaction = in_transaction or _is_in_transaction(piece)
        yield
    if in_transaction and not _may_use_transaction(context, request):
        _refuse_all(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return PARKED
    entries: dict[TopicPartition, memoryview] = {}
    refused: dict[PartitionKey, PartitionResponse] = {}
    names = []
    for piece in pieces:
        names.append(_take_topic(context, request, piece, entries, refused))
        yield

    def on_complete(results: dict[TopicPartition, PartitionResponse]) -> None:
        _answer(context, request, names, results, refused, pieces)

    if in_transaction:
        try:
            yield from append_transactional(context, request, entries, on_complete)
        except KafkaError as refusal_of_all:
            _refuse_all(request, refusal_of_all.code)
    else:
        yield from append_entries_in_steps(context, request, entries, on_complete)
    return PARKED


def _pieces(
    body: messages.ProduceRequest,
) -> Iterator[messages.ProduceRequest.TopicProduceData]:
    """The request's topics, those of many partitions in pieces."""
    for topic in body.topic_data:
        if len(topic.partition_data) <= PARTITIONS_PER_PIECE:
            yield topic
            continue
        for batch in in_batches(topic.partition_data, PARTITIONS_PER_PIECE):
            yield messages.ProduceRequest.TopicProduceData(
                name=topic.name, topic_id=topic.topic_id, partition_data=list(batch)
            )


def _response_in_steps(
    context: HandlerContext,
    request: Request[messages.ProduceRequest],
    pieces: list[messages.ProduceRequest.TopicProduceData],
    names: Sequence[str | None],
    results: dict[TopicPartition, PartitionResponse],
    refused: dict[PartitionKey, PartitionResponse],
) -> Steps[messages.ProduceResponse]:
    answer = messages.ProduceResponse()
    for piece, name in zip(pieces, names, strict=True):
        part = produce_response(context, request, [piece], [name], results, refused)
        (topic,) = part.responses
        last = answer.responses[-1] if answer.responses else None
        if last is not None and (last.name, last.topic_id) == (topic.name, topic.topic_id):
            last.partition_responses += topic.partition_responses
        else:
            answer.responses.append(topic)
        known = {each.node_id for each in answer.node_endpoints}
        answer.node_endpoints += [each for each in part.node_endpoints if each.node_id not in known]
        yield
    yield from clear_in_steps(pieces)
    yield from clear_in_steps(results)
    yield from clear_in_steps(refused)
    return answer


def _topic_name(
    context: HandlerContext,
    request: Request[messages.ProduceRequest],
    topic: messages.ProduceRequest.TopicProduceData,
    refused: dict[PartitionKey, PartitionResponse],
) -> str | None:
    """The topic's name; None, and all its partitions refused, where it may not be written."""
    error = ErrorCode.NONE
    name: str | None
    if request.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        name = context.metadata_cache.topic_name(topic.topic_id)
        if name is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID
    else:
        name = topic.name
    if name is not None and not context.authorize(request, "WRITE", "TOPIC", name):
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if error is ErrorCode.NONE:
        return name
    for partition in topic.partition_data:
        refused[partition_key(request.api_version, topic, partition.index)] = PartitionResponse(
            error
        )
    return None


def _refuse_all(request: Request[messages.ProduceRequest], error: ErrorCode) -> AtFlush:
    """Answer every partition with one error, in the order of the connection's requests."""
    if request.body.acks == 0:
        _answer_without_acks(request, [PartitionResponse(error)])
        return AT_FLUSH
    raise KafkaError(error)


def _answer(
    context: HandlerContext,
    request: Request[messages.ProduceRequest],
    names: Sequence[str | None],
    results: dict[TopicPartition, PartitionResponse],
    refused: dict[PartitionKey, PartitionResponse],
    pieces: list[messages.ProduceRequest.TopicProduceData] | None = None,
) -> None:
    topics = request.body.topic_data
    if request.body.acks == 0:
        _answer_without_acks(request, [*results.values(), *refused.values()])
    elif pieces is not None:
        request.answer_after(_response_in_steps(context, request, pieces, names, results, refused))
    else:
        request.answer(produce_response(context, request, topics, names, results, refused))


def _answer_without_acks(
    request: Request[messages.ProduceRequest], results: list[PartitionResponse]
) -> None:
    """Say nothing, or close: a producer that wants no answers can only learn so of an error."""
    failed = [result for result in results if result.error]
    request.answer_nothing()
    if failed:
        request.connection.fail(
            f"Produce with acks=0 failed with {failed[0].error.name}: "
            f"{failed[0].error_message or 'no details'}"
        )
        request.connection.unanswered.clear()  # what came after it is not answered, as in Kafka
