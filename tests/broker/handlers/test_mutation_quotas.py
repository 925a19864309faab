"""Quotas of mutations (KIP-599): refused from the versions on that know the error, else throttled.

The controller counts what other brokers send on for the client whose request it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from odradek.broker.interbroker.forwarding import FORWARDED_BY
from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from conftest import Bench, Client

EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
BURST = 11
"""Partitions that a bucket holds at one a second: eleven windows."""


@pytest.fixture
async def bounded(bench: Bench) -> Bench:
    manager = bench.broker.config_manager
    await manager.alter_quotas("users/ANONYMOUS", lambda _: {"controller_mutation_rate": "1.0"})
    return bench


async def create(client: Client, version: int, **topics: int) -> Any:
    make = messages.CreateTopicsRequest
    answer = await client.call(
        make(
            topics=[
                make.CreatableTopic(name=name, num_partitions=count, replication_factor=1)
                for name, count in topics.items()
            ]
        ),
        version,
    )
    client.connection.note_sent()
    return answer.throttle_time_ms, {each.name: each.error_code for each in answer.topics}


async def test_what_is_above_the_quota_is_refused(bounded: Bench) -> None:
    throttle_ms, created = await create(bounded.client, 7, a=BURST + 5, b=1)
    assert created == {"a": ErrorCode.NONE, "b": EXCEEDED}
    assert 3000 < throttle_ms <= 5000
    assert bounded.client.connection.is_held


async def test_a_topic_that_is_there_already_does_not_count(bounded: Bench) -> None:
    await create(bounded.client, 7, a=BURST)
    throttle_ms, created = await create(bounded.client, 7, a=BURST)
    assert (throttle_ms, created) == (0, {"a": ErrorCode.TOPIC_ALREADY_EXISTS})


async def test_older_clients_are_only_throttled(bounded: Bench) -> None:
    throttle_ms, created = await create(bounded.client, 5, a=BURST + 5, b=1)
    assert created == {"a": ErrorCode.NONE, "b": ErrorCode.NONE}
    assert 4000 < throttle_ms <= 6000
    assert bounded.client.connection.is_held


@pytest.mark.parametrize(("version", "error"), [(4, ErrorCode.NONE), (6, EXCEEDED)])
async def test_deletions_count(bounded: Bench, version: int, error: ErrorCode) -> None:
    await create(bounded.client, 5, a=BURST + 5)
    request = messages.DeleteTopicsRequest
    named = (
        request(topic_names=["a"], timeout_ms=10_000)
        if version < 6
        else request(topics=[request.DeleteTopicState(name="a")], timeout_ms=10_000)
    )
    answer = await bounded.another_client().call(named, version)
    assert [each.error_code for each in answer.responses] == [error]
    assert answer.throttle_time_ms > 3000


@pytest.mark.parametrize(("version", "error"), [(2, ErrorCode.NONE), (3, EXCEEDED)])
async def test_new_partitions_count(bounded: Bench, version: int, error: ErrorCode) -> None:
    await create(bounded.client, 5, a=BURST + 5)
    request = messages.CreatePartitionsRequest
    topic = request.CreatePartitionsTopic(name="a", count=BURST + 7, assignments=None)
    answer = await bounded.another_client().call(
        request(topics=[topic], timeout_ms=10_000), version
    )
    assert [each.error_code for each in answer.results] == [error]
    assert answer.throttle_time_ms > 3000


async def test_only_a_broker_says_whose_request_it_sends_on(bench: Bench) -> None:
    seen: list[tuple[str, str, str]] = []

    def authorize(request: Any, operation: str, kind: str, name: str, **_: bool) -> bool:
        connection = request.connection
        if request.api_key != ApiKey.CREATE_TOPICS:
            return True  # the controller's own
        seen.append((connection.principal, connection.peer_host, request.client_id))
        return True

    bench.authorize_by(authorize)
    client_id = f"{FORWARDED_BY}9 User:al%20ice ::1 my%20app"
    client = bench.another_client(client_id)
    await create(client, 7, a=1)
    assert set(seen) == {("User:ANONYMOUS", "127.0.0.1", client_id)}
    seen.clear()
    client.connection.is_broker = True
    await create(client, 7, b=1)
    assert set(seen) == {("User:al ice", "::1", "my app")}


async def test_forwarded_mutations_count_for_the_client_and_do_not_mute_the_broker(
    bounded: Bench,
) -> None:
    client = bounded.another_client(f"{FORWARDED_BY}9 User:ANONYMOUS 10.0.0.1 app")
    client.connection.is_broker = True
    throttle_ms, created = await create(client, 7, a=BURST + 5, b=1)
    assert created["b"] == EXCEEDED
    assert throttle_ms > 3000
    assert not client.connection.is_held
    client = bounded.another_client(f"{FORWARDED_BY}9 User:other 10.0.0.1 app")
    client.connection.is_broker = True
    assert await create(client, 7, c=20, d=1) == (0, {"c": ErrorCode.NONE, "d": ErrorCode.NONE})
