"""The transaction APIs on a whole broker, in every version that is served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.kept_changes import KeptChanges

from odradek.common.errors import ErrorCode
from odradek.common.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from odradek.common.topic_partition import TopicPartition
from odradek.protocol import messages

if TYPE_CHECKING:
    from conftest import Bench

ID = "payments"
NOT_ATTEMPTED = ErrorCode.OPERATION_NOT_ATTEMPTED
Producer = tuple[int, int]


@pytest.fixture
async def bench(bench: Bench) -> Bench:
    """A broker that has made the topic of transactions, and `orders` with three partitions."""
    await bench.create_topic("orders", 3)
    found = await find(bench, 4)
    assert found.coordinators[0].error_code == ErrorCode.NONE
    return bench


@pytest.fixture
def settings() -> dict[str, str]:
    """Fifty partitions take longer to make than most tests take."""
    return {"transaction.state.log.num.partitions": "3"}


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> KeptChanges:
    """Told of what the coordinator stores."""
    return KeptChanges(monkeypatch)


def deny(bench: Bench, monkeypatch: pytest.MonkeyPatch, *denied: tuple[str, str, str]) -> None:
    """Nobody may do these: operation, kind of resource, name."""
    bench.authorize_by(lambda request, *requested: tuple(requested) not in denied)


async def find(bench: Bench, version: int, key_type: int = 1) -> Any:
    request = messages.FindCoordinatorRequest
    if version >= 4:
        body = request(key_type=key_type, coordinator_keys=[ID])
    else:
        body = request(key_type=key_type, key=ID)
    return await bench.client.call(body, version)


async def init(bench: Bench, version: int = 5, **fields: Any) -> Any:
    body = {"transactional_id": ID, "transaction_timeout_ms": 60_000} | fields
    return await bench.client.call(messages.InitProducerIdRequest(**body), version)


async def new_producer(bench: Bench) -> Producer:
    answer = await init(bench)
    assert answer.error_code == ErrorCode.NONE
    return answer.producer_id, answer.producer_epoch


async def add(
    bench: Bench, producer: Producer, version: int, *partitions: tuple[str, int], name: str = ID
) -> dict[tuple[str, int], int]:
    """AddPartitionsToTxn as a client sends it: the error of each partition."""
    request = messages.AddPartitionsToTxnRequest
    body = request(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=topics_of(partitions),
    )
    answer = await bench.client.call(body, version)
    return errors_of(answer.results_by_topic_v3_and_below)


async def add_as_broker(bench: Bench, version: int, *transactions: Any) -> Any:
    body = messages.AddPartitionsToTxnRequest(transactions=list(transactions))
    return await bench.client.call(body, version)


def transaction(
    producer: Producer, *partitions: tuple[str, int], name: str = ID, verify_only: bool = False
) -> Any:
    return messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
        transactional_id=name,
        producer_id=producer[0],
        producer_epoch=producer[1],
        verify_only=verify_only,
        topics=topics_of(partitions),
    )


def topics_of(partitions: tuple[tuple[str, int], ...]) -> list[Any]:
    request = messages.AddPartitionsToTxnRequest
    names = dict.fromkeys(topic for topic, _ in partitions)
    return [
        request.AddPartitionsToTxnTopic(
            name=name, partitions=[number for topic, number in partitions if topic == name]
        )
        for name in names
    ]


def errors_of(topics: list[Any]) -> dict[tuple[str, int], int]:
    return {
        (topic.name, result.partition_index): result.partition_error_code
        for topic in topics
        for result in topic.results_by_partition
    }


async def end(
    bench: Bench, producer: Producer, version: int, *, commit: bool = True, name: str = ID
) -> Any:
    return await bench.client.call(
        messages.EndTxnRequest(
            transactional_id=name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=commit,
        ),
        version,
    )


async def describe(bench: Bench, *names: str) -> list[Any]:
    body = messages.DescribeTransactionsRequest(transactional_ids=list(names))
    return (await bench.client.call(body, 0)).transaction_states


async def list_all(bench: Bench, version: int = 2, **filters: Any) -> Any:
    fields = {"state_filters": [], "producer_id_filters": []} | filters
    return await bench.client.call(messages.ListTransactionsRequest(**fields), version)


# -- finding the coordinator -------------------------------------------------------------------


@pytest.mark.parametrize("version", range(1, 7))
async def test_the_coordinator_leads_the_partition_that_keeps_the_id(
    bench: Bench, version: int
) -> None:
    answer = await find(bench, version)
    found = answer.coordinators[0] if version >= 4 else answer
    assert (found.error_code, found.node_id) == (ErrorCode.NONE, bench.broker.broker_id)


@pytest.mark.parametrize("settings", [{}])
async def test_the_topic_of_transactions_is_made_as_kafka_makes_it(bench: Bench) -> None:
    body = messages.DescribeConfigsRequest(
        resources=[
            messages.DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=2, resource_name=TRANSACTION_STATE, configuration_keys=None
            )
        ]
    )
    answer = await bench.client.call(body, 4)
    values = {entry.name: entry.value for entry in answer.results[0].configs}
    assert values["cleanup.policy"] == "compact"
    assert values["compression.type"] == "uncompressed"
    assert values["unclean.leader.election.enable"] == "false"
    assert values["segment.bytes"] == "104857600"
    assert bench.broker.metadata_cache.partition_count(TRANSACTION_STATE) == 50


async def test_who_may_not_describe_an_id_may_not_look_for_its_coordinator(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    deny(bench, monkeypatch, ("DESCRIBE", "TRANSACTIONAL_ID", ID))
    answer = await find(bench, 6)
    refusal = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert answer.coordinators[0].error_code == refusal


async def test_no_topic_is_made_for_who_may_not_look(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    deny(bench, monkeypatch, ("DESCRIBE", "GROUP", ID))
    answer = await find(bench, 6, key_type=0)
    assert answer.coordinators[0].error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert not bench.broker.metadata_cache.contains(CONSUMER_OFFSETS)


# -- InitProducerId ----------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(6))
async def test_a_producer_gets_id_and_epoch(bench: Bench, version: int) -> None:
    first = await init(bench, version)
    second = await init(bench, version)
    assert first.error_code == second.error_code == ErrorCode.NONE
    assert first.producer_id == second.producer_id >= 0
    assert (first.producer_epoch, second.producer_epoch) == (0, 1)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
        ({"transaction_timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
async def test_what_no_producer_can_have_is_refused(
    bench: Bench, fields: dict[str, Any], error: ErrorCode
) -> None:
    answer = await init(bench, **fields)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (error, -1, -1)


@pytest.mark.parametrize("version", [3, 4, 5])
async def test_a_replaced_producer_is_fenced_in_the_words_of_its_version(
    bench: Bench, version: int
) -> None:
    producer_id, epoch = await new_producer(bench)
    await new_producer(bench)
    answer = await init(bench, version, producer_id=producer_id, producer_epoch=epoch)
    old, new = ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED
    assert answer.error_code == (old if version < 4 else new)


async def test_who_may_not_write_under_an_id_gets_no_producer_id(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    deny(bench, monkeypatch, ("WRITE", "TRANSACTIONAL_ID", ID))
    answer = await init(bench)
    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


async def test_who_may_not_write_at_all_gets_no_producer_id(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    deny(bench, monkeypatch, ("IDEMPOTENT_WRITE", "CLUSTER", "kafka-cluster"))
    answer = await init(bench, transactional_id=None)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


# -- AddPartitionsToTxn ------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(4))
async def test_partitions_join_a_transaction(bench: Bench, version: int) -> None:
    producer = await new_producer(bench)
    requested = [("orders", 0), ("orders", 2)]
    assert await add(bench, producer, version, *requested) == dict.fromkeys(
        requested, ErrorCode.NONE
    )
    (found,) = await describe(bench, ID)
    assert found.transaction_state == "Ongoing"
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [("orders", [0, 2])]


@pytest.mark.parametrize("version", range(4))
async def test_an_unknown_partition_keeps_the_others_out(bench: Bench, version: int) -> None:
    producer = await new_producer(bench)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    errors = await add(bench, producer, version, ("orders", 0), ("orders", 3), ("nowhere", 0))
    assert errors == {("orders", 0): NOT_ATTEMPTED, ("orders", 3): unknown, ("nowhere", 0): unknown}
    (found,) = await describe(bench, ID)
    assert found.transaction_state == "Empty"


async def test_a_forbidden_topic_keeps_the_others_out(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.create_topic("secret")
    producer = await new_producer(bench)
    deny(bench, monkeypatch, ("WRITE", "TOPIC", "secret"))
    errors = await add(bench, producer, 3, ("orders", 0), ("secret", 0))
    assert errors == {
        ("orders", 0): NOT_ATTEMPTED,
        ("secret", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }


async def test_a_client_adds_no_internal_topic(bench: Bench) -> None:
    producer = await new_producer(bench)
    errors = await add(bench, producer, 3, (TRANSACTION_STATE, 0))
    assert errors == {(TRANSACTION_STATE, 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED}


async def test_who_may_not_write_under_an_id_adds_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = await new_producer(bench)
    deny(bench, monkeypatch, ("WRITE", "TRANSACTIONAL_ID", ID))
    errors = await add(bench, producer, 3, ("orders", 0))
    assert errors == {("orders", 0): ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}


@pytest.mark.parametrize("version", range(4))
async def test_a_fenced_producer_is_told_in_the_words_of_its_version(
    bench: Bench, version: int
) -> None:
    producer = await new_producer(bench)
    await new_producer(bench)
    old, new = ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED
    errors = await add(bench, producer, version, ("orders", 0))
    assert errors == {("orders", 0): old if version < 2 else new}
    unknown = await add(bench, producer, version, ("orders", 0), name="x")
    assert unknown == {("orders", 0): ErrorCode.INVALID_PRODUCER_ID_MAPPING}


@pytest.mark.parametrize("version", [4, 5])
async def test_brokers_ask_for_many_transactions_at_once(bench: Bench, version: int) -> None:
    producer = await new_producer(bench)
    other = await init(bench, transactional_id="other")
    await add_as_broker(bench, version, transaction(producer, ("orders", 0)))
    answer = await add_as_broker(
        bench,
        version,
        transaction(producer, ("orders", 0), ("orders", 1), verify_only=True),
        transaction((other.producer_id, other.producer_epoch), ("orders", 2), name="other"),
        transaction((1, 1), ("orders", 2), name="nobody"),
    )
    assert answer.error_code == ErrorCode.NONE
    errors = {
        result.transactional_id: errors_of(result.topic_results)
        for result in answer.results_by_transaction
    }
    assert errors == {
        ID: {("orders", 0): ErrorCode.NONE, ("orders", 1): ErrorCode.TRANSACTION_ABORTABLE},
        "other": {("orders", 2): ErrorCode.NONE},
        "nobody": {("orders", 2): ErrorCode.INVALID_PRODUCER_ID_MAPPING},
    }


@pytest.mark.parametrize("version", [4, 5])
async def test_only_brokers_ask_for_many_transactions(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    deny(bench, monkeypatch, ("CLUSTER_ACTION", "CLUSTER", "kafka-cluster"))
    answer = await add_as_broker(bench, version, transaction((1, 1), ("orders", 0)))
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_brokers_may_add_what_their_clients_were_allowed_before(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = await new_producer(bench)
    forbidden = (("WRITE", "TRANSACTIONAL_ID", ID), ("WRITE", "TOPIC", "orders"))
    deny(bench, monkeypatch, *forbidden)
    answer = await add_as_broker(bench, 5, transaction(producer, ("orders", 0)))
    (result,) = answer.results_by_transaction
    assert errors_of(result.topic_results) == {("orders", 0): ErrorCode.NONE}


async def test_no_transactions_at_all_are_answered(bench: Bench) -> None:
    answer = await add_as_broker(bench, 5)
    assert (answer.error_code, answer.results_by_transaction) == (ErrorCode.NONE, [])


# -- AddOffsetsToTxn ---------------------------------------------------------------------------


async def add_offsets(bench: Bench, producer: Producer, version: int) -> int:
    answer = await bench.client.call(
        messages.AddOffsetsToTxnRequest(
            transactional_id=ID, producer_id=producer[0], producer_epoch=producer[1], group_id="g"
        ),
        version,
    )
    return int(answer.error_code)


@pytest.mark.parametrize("version", range(5))
async def test_the_partition_of_a_group_joins(bench: Bench, version: int) -> None:
    producer = await new_producer(bench)
    assert await add_offsets(bench, producer, version) == ErrorCode.NONE
    (found,) = await describe(bench, ID)
    partition = bench.broker.coordinators.group.partition_for("g")
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [
        (CONSUMER_OFFSETS, [partition])
    ]


@pytest.mark.parametrize("version", range(5))
async def test_a_fenced_producer_adds_no_offsets(bench: Bench, version: int) -> None:
    producer = await new_producer(bench)
    await new_producer(bench)
    old, new = ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED
    assert await add_offsets(bench, producer, version) == (old if version < 2 else new)


async def test_offsets_of_a_transaction_need_both_rights(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = await new_producer(bench)
    deny(bench, monkeypatch, ("READ", "GROUP", "g"))
    assert await add_offsets(bench, producer, 4) == ErrorCode.GROUP_AUTHORIZATION_FAILED
    deny(bench, monkeypatch, ("WRITE", "TRANSACTIONAL_ID", ID))
    refusal = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert await add_offsets(bench, producer, 4) == refusal


# -- EndTxn ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("commit", [True, False])
async def test_a_transaction_ends_with_a_marker_in_each_partition(
    bench: Bench, kept: KeptChanges, version: int, commit: bool
) -> None:
    producer = await new_producer(bench)
    await add(bench, producer, 3, ("orders", 0), ("orders", 2))
    answer = await end(bench, producer, version, commit=commit)
    assert answer.error_code == ErrorCode.NONE
    if version >= 5:
        assert (answer.producer_id, answer.producer_epoch) == (producer[0], producer[1] + 1)
    assert await kept.completed(bench.broker, ID) == (
        "CompleteCommit" if commit else "CompleteAbort"
    )
    assert [bench.log_end_offset("orders", partition) for partition in range(3)] == [1, 0, 1]
    again = await end(bench, producer, version, commit=commit)
    assert again.error_code == ErrorCode.NONE
    if version >= 5:
        assert again.producer_epoch == answer.producer_epoch


@pytest.mark.parametrize("version", range(6))
async def test_a_fenced_producer_ends_nothing(bench: Bench, version: int) -> None:
    producer = await new_producer(bench)
    await new_producer(bench)
    await new_producer(bench)
    old, new = ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED
    answer = await end(bench, producer, version)
    assert answer.error_code == (old if version < 2 else new)
    unknown = await end(bench, producer, version, name="x")
    assert unknown.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


async def test_who_may_not_write_under_an_id_ends_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = await new_producer(bench)
    deny(bench, monkeypatch, ("WRITE", "TRANSACTIONAL_ID", ID))
    answer = await end(bench, producer, 5)
    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


async def test_a_partition_that_is_deleted_meanwhile_keeps_no_transaction_open(
    bench: Bench, kept: KeptChanges
) -> None:
    await bench.create_topic("doomed")
    producer = await new_producer(bench)
    await add(bench, producer, 3, ("orders", 0), ("doomed", 0))
    answer = await bench.client.call(
        messages.DeleteTopicsRequest(
            topics=[messages.DeleteTopicsRequest.DeleteTopicState(name="doomed")], timeout_ms=10_000
        ),
        6,
    )
    assert answer.responses[0].error_code == ErrorCode.NONE
    assert (await end(bench, producer, 4)).error_code == ErrorCode.NONE
    assert await kept.completed(bench.broker, ID) == "CompleteCommit"


# -- what operators ask ------------------------------------------------------------------------


async def test_transactions_are_described_one_by_one(bench: Bench) -> None:
    producer = await new_producer(bench)
    await add(bench, producer, 3, ("orders", 1))
    found, unknown, empty = await describe(bench, ID, "nobody", "")
    assert found.error_code == ErrorCode.NONE
    assert (found.producer_id, found.producer_epoch) == producer
    assert found.transaction_timeout_ms == 60_000
    assert found.transaction_start_time_ms > 0
    assert unknown.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert empty.error_code == ErrorCode.INVALID_REQUEST


async def test_what_may_not_be_described_is_left_out(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = await new_producer(bench)
    await add(bench, producer, 3, ("orders", 1))
    deny(bench, monkeypatch, ("DESCRIBE", "TOPIC", "orders"))
    (found,) = await describe(bench, ID)
    assert (found.error_code, found.topics) == (ErrorCode.NONE, [])
    deny(bench, monkeypatch, ("DESCRIBE", "TRANSACTIONAL_ID", ID))
    (found,) = await describe(bench, ID)
    assert found.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert (await list_all(bench)).transaction_states == []


@pytest.mark.parametrize("version", range(3))
async def test_transactions_are_listed_and_filtered(bench: Bench, version: int) -> None:
    producer = await new_producer(bench)
    await add(bench, producer, 3, ("orders", 1))
    await init(bench, transactional_id="other")
    answer = await list_all(bench, version)
    assert answer.error_code == ErrorCode.NONE
    assert {
        each.transactional_id: each.transaction_state for each in answer.transaction_states
    } == {ID: "Ongoing", "other": "Empty"}
    answer = await list_all(bench, version, state_filters=["Empty", "Nowhere"])
    assert [each.transactional_id for each in answer.transaction_states] == ["other"]
    assert answer.unknown_state_filters == ["Nowhere"]
    answer = await list_all(bench, version, producer_id_filters=[producer[0]])
    assert [each.transactional_id for each in answer.transaction_states] == [ID]


async def test_a_pattern_must_match_the_whole_id(bench: Bench) -> None:
    await new_producer(bench)
    for pattern, found in (("pay.*", [ID]), ("pay", []), ("[a-z]{8}", [ID]), ("", [ID])):
        answer = await list_all(bench, transactional_id_pattern=pattern)
        assert [each.transactional_id for each in answer.transaction_states] == found, pattern


async def test_a_pattern_that_does_not_compile_is_refused(bench: Bench) -> None:
    answer = await list_all(bench, transactional_id_pattern="(")
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


async def test_the_duration_leaves_out_what_began_just_now(bench: Bench) -> None:
    producer = await new_producer(bench)
    await add(bench, producer, 3, ("orders", 1))
    assert (await list_all(bench, duration_filter=3_600_000)).transaction_states == []


async def test_a_restarted_coordinator_knows_what_it_led(bench: Bench, kept: KeptChanges) -> None:
    producer = await new_producer(bench)
    await add(bench, producer, 3, ("orders", 1))
    coordinator = bench.broker.coordinators.transaction
    partition = coordinator.partition_for(ID)
    coordinator.note_leadership(partition, 1, is_leader=False)
    assert (await end(bench, producer, 4)).error_code == ErrorCode.NOT_COORDINATOR
    coordinator.note_leadership(partition, 2, is_leader=True)
    assert (await end(bench, producer, 4)).error_code == ErrorCode.NONE
    assert await kept.completed(bench.broker, ID) == "CompleteCommit"
    led = bench.broker.replica_manager.partition_or_error(TopicPartition("orders", 1))
    assert led.log_end_offset == 1
