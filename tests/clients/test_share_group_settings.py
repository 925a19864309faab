"""Settings of share groups, as librdkafka's share consumer meets them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from support.share_consumers import (
    QUICK_SHARE_GROUPS,
    SECONDS_MAX,
    produce,
    set_group,
    share_member,
    take,
)

from odradek.common.errors import ErrorCode
from odradek.testing.process.broker_process import BrokerProcess
from odradek.tools.conformance.scenarios.share.share_groups import (
    ACCEPT,
    RENEW,
    Reading,
    counted,
    produced,
    reader,
)
from odradek.tools.conformance.talk import Talk
from odradek.tools.conformance.transcript import Transcript

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("share")
    with BrokerProcess(folder / "data", settings=QUICK_SHARE_GROUPS) as broker:
        yield broker.bootstrap


@pytest.fixture
def name(bootstrap: str) -> str:
    """A topic, and a group of the same name."""
    name = f"t-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
    (made,) = admin.create_topics([NewTopic(name, 1, 1)]).values()
    made.result(SECONDS_MAX)
    return name


def read(bootstrap: str, name: str, count: int) -> list[str]:
    """The first records that a member is given, in order of their offsets."""
    with share_member(bootstrap, name, name) as member:
        taken = sorted(take(member, count), key=lambda message: message.offset())
        return [message.value().decode() for message in taken]


def write_transaction(bootstrap: str, name: str, value: str, *, commits: bool) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{name}-{value}"})
    producer.init_transactions(SECONDS_MAX)
    producer.begin_transaction()
    producer.produce(name, value, partition=0)
    if commits:
        producer.commit_transaction(SECONDS_MAX)
    else:
        producer.flush(SECONDS_MAX)
        producer.abort_transaction(SECONDS_MAX)


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("read_committed", ["committed", "last"]),
        ("read_uncommitted", ["aborted", "committed", "last"]),
    ],
)
def test_a_group_reads_what_its_isolation_level_allows(
    bootstrap: str, name: str, level: str, expected: list[str]
) -> None:
    set_group(bootstrap, name, isolation_level=level)
    write_transaction(bootstrap, name, "aborted", commits=False)
    write_transaction(bootstrap, name, "committed", commits=True)
    produce(bootstrap, name, ["last"])

    assert read(bootstrap, name, len(expected)) == expected


def test_a_group_that_reads_committed_records_waits_for_open_transactions(
    bootstrap: str, name: str
) -> None:
    set_group(bootstrap, name, isolation_level="read_committed")
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(SECONDS_MAX)
    with share_member(bootstrap, name, name) as member:
        produce(bootstrap, name, ["before"])
        assert [each.value() for each in take(member)] == [b"before"]
        producer.begin_transaction()
        producer.produce(name, "open", partition=0)
        assert producer.flush(SECONDS_MAX) == 0
        produce(bootstrap, name, ["behind"])
        assert not list(member.poll(timeout=0.5))
        producer.commit_transaction(SECONDS_MAX)

        taken = take(member, 2)

    assert [each.value() for each in taken] == [b"open", b"behind"]


def test_a_group_begins_with_what_is_no_older_than_a_duration(bootstrap: str, name: str) -> None:
    set_group(bootstrap, name, auto_offset_reset="by_duration:PT1H")
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 2})
    now_ms = int(time.time() * 1000)
    for value, minutes in (("old", 180), ("older", 61), ("young", 59), ("new", 0)):
        producer.produce(name, value, partition=0, timestamp=now_ms - minutes * 60_000)
        assert producer.flush(SECONDS_MAX) == 0

    assert read(bootstrap, name, 2) == ["young", "new"]


@pytest.mark.parametrize("reset", ["latest", "by_duration:PT1H"])
def test_a_group_leaves_old_records_unread(bootstrap: str, name: str, reset: str) -> None:
    set_group(bootstrap, name, auto_offset_reset=reset)
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 2})
    producer.produce(name, "old", partition=0, timestamp=int(time.time() - 7200) * 1000)
    assert producer.flush(SECONDS_MAX) == 0
    with share_member(bootstrap, name, name) as member:
        written: list[str] = []
        deadline = time.monotonic() + SECONDS_MAX
        # When the group looked for the end is not said: what comes was written after that.
        while not (taken := list(member.poll(timeout=0.5))):
            assert time.monotonic() < deadline
            written.append(f"new-{len(written)}")
            produce(bootstrap, name, written[-1:])

    values = [each.value().decode() for each in taken]
    assert set(values) <= set(written)
    if reset != "latest":
        assert values[0] == "new-0", "it begins with the first record that is not too old"


@pytest.fixture
def talk(bootstrap: str) -> Iterator[Talk]:
    """Requests as they are, for what librdkafka does not send or does not show."""
    with Talk(bootstrap, f"t-{uuid4().hex[:8]}", 2, Transcript()) as talk:
        yield talk


def test_a_group_has_no_more_records_in_flight_than_it_may(talk: Talk) -> None:
    member, topic_id = reader(talk, partition_max_record_locks="100")
    produced(talk, topic_id, [60, 60, 60])

    member.fetch_all(120)  # whole batches, until the limit is passed

    assert member.fetch(Reading([], 5, 0), wait_ms=0) == []
    member.say({0: [(0, 119, [ACCEPT])]})
    assert counted(member.fetch(Reading([], 5, 0))) == 60


@pytest.mark.parametrize(
    ("enabled", "error"), [("true", ErrorCode.NONE), ("false", ErrorCode.INVALID_RECORD_STATE)]
)
def test_a_group_renews_locks_if_it_may(talk: Talk, enabled: str, error: ErrorCode) -> None:
    member, topic_id = reader(talk, renew_acknowledge_enable=enabled)
    produced(talk, topic_id, [3])
    member.fetch_all(3)

    answer = member.say({0: [(0, 2, [RENEW])]}, is_renew_ack=True)

    assert [each.error_code for each in answer.responses[0].partitions] == [error]
