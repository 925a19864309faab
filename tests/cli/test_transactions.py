"""`odradek transactions`: what is open, what hangs, and how to end it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka
import pytest
from support.hanging_transaction import LOST_PRODUCER_ID, leave_hanging

from .conftest import Odradek

pytestmark = pytest.mark.clients


@pytest.fixture
def created(on_broker: Odradek, topic: str) -> str:
    on_broker("topics", "create", topic, "-p", 2, "-c", "retention.ms=-1")
    return topic


@contextmanager
def open_transaction(broker: Any, topic: str, transactional_id: str) -> Iterator[Any]:
    """A producer with one record in partition 1 of the topic, not committed yet."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": transactional_id}
    )
    producer.init_transactions(90)
    producer.begin_transaction()
    producer.produce(topic, b"in a transaction", partition=1)
    assert producer.flush(90) == 0
    yield producer


def ids(on_broker: Odradek, *options: object) -> dict[str, str]:
    """State by transactional id, as `list` tells them."""
    lines = on_broker("transactions", "list", "--json", *options).lines
    return {row["id"]: row["state"] for row in map(json.loads, lines)}


def described(on_broker: Odradek, transactional_id: str) -> dict[str, Any]:
    (line,) = on_broker("transactions", "describe", transactional_id, "--json").lines
    told: dict[str, Any] = json.loads(line)
    return told


def producers(on_broker: Odradek, what: str) -> list[dict[str, Any]]:
    lines = on_broker("transactions", "describe-producers", what, "--json").lines
    return [json.loads(line) for line in lines]


def test_an_open_transaction_is_shown_and_its_end_too(
    on_broker: Odradek, broker: Any, created: str
) -> None:
    name = f"tx-{created}"
    with open_transaction(broker, created, name) as producer:
        assert ids(on_broker)[name] == "Ongoing"
        told = described(on_broker, name)
        assert (told["state"], told["partitions"]) == ("Ongoing", [f"{created}:1"])
        assert 0 <= told["age_ms"] < 60_000 == told["timeout_ms"]
        (of_partition,) = producers(on_broker, f"{created}:1")
        assert of_partition["producer_id"] == told["producer_id"]
        assert of_partition["open_since_offset"] == 0
        shown = on_broker("transactions", "describe", name).out
        assert "a transaction is open" in shown
        assert f"{created}:1" in shown
        producer.commit_transaction(90)
    assert ids(on_broker)[name] in ("PrepareCommit", "CompleteCommit")
    assert "began" in on_broker("transactions", "describe", name).out
    assert producers(on_broker, f"{created}:0") == []


def test_list_shows_only_what_is_requested(on_broker: Odradek, broker: Any, created: str) -> None:
    first, second = f"a-{created}", f"b-{created}"
    with (
        open_transaction(broker, created, first),
        open_transaction(broker, created, second) as producer,
    ):
        producer.abort_transaction(90)
        assert {first, second} <= set(ids(on_broker))
        ongoing = ids(on_broker, "--state", "Ongoing,PrepareAbort")
        assert first in ongoing
        assert ids(on_broker, "--state", "Ongoing", "--pattern", f"b-{created}") == {}
        assert set(ids(on_broker, "--pattern", f"[ab]-{created}")) == {first, second}
        producer_id = described(on_broker, first)["producer_id"]
        assert set(ids(on_broker, "--producer-id", producer_id)) == {first}
        assert first in ids(on_broker, "--longer-than", "1ms")
        assert first not in ids(on_broker, "--longer-than", "1h")


def test_force_terminate_ends_what_is_open_and_shuts_the_producer_out(
    on_broker: Odradek, broker: Any, created: str
) -> None:
    name = f"tx-{created}"
    with open_transaction(broker, created, name) as producer:
        outcome = on_broker("transactions", "force-terminate", name)
        assert f"ended what was open of {name}" in outcome.err
        with pytest.raises(confluent_kafka.KafkaException) as refusal:
            producer.commit_transaction(90)
    assert refusal.value.args[0].fatal()
    assert described(on_broker, name)["state"] == "Empty"
    assert producers(on_broker, f"{created}:1")[0]["open_since_offset"] is None


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("how", ["by its offset", "by its producer"])
def test_a_hanging_transaction_is_found_and_aborted(
    odradek: Odradek,
    start_broker: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    topic: str,
    how: str,
) -> None:
    broker = start_broker(settings={"transaction.partition.verification.enable": "false"})
    monkeypatch.setenv("ODRADEK_BOOTSTRAP_SERVER", broker.bootstrap)

    def hanging(*options: object) -> list[dict[str, Any]]:
        outcome = odradek("transactions", "find-hanging", "--json", *options)
        assert outcome.code == 0, outcome.err
        rows = [json.loads(line) for line in outcome.lines]
        assert all(row.pop("age_ms") > 0 for row in rows)
        return rows

    odradek("topics", "create", topic, "-p", 2, "-c", "retention.ms=-1")
    leave_hanging(broker.port, topic)
    (found,) = hanging()
    assert hanging(topic) == hanging(f"{topic}:0", "--broker-id", 1) == [found]
    assert hanging(f"{topic}:1") == []
    assert (found["topic"], found["partition"], found["id"]) == (topic, 0, None)
    assert (found["producer_id"], found["open_since_offset"]) == (LOST_PRODUCER_ID, 0)
    century_minutes = 100 * 365 * 24 * 60
    assert hanging(topic, "--max-transaction-timeout", century_minutes) == []
    shown = odradek("transactions", "find-hanging")
    assert str(LOST_PRODUCER_ID) in shown.out
    assert "odradek transactions abort TOPIC:PARTITION --start-offset N" in shown.out
    which = {
        "by its offset": ["--start-offset", 0],
        "by its producer": [
            *("--producer-id", LOST_PRODUCER_ID),
            *("--producer-epoch", 3, "--coordinator-epoch", 0),
        ],
    }
    aborted = odradek("transactions", "abort", f"{topic}:0", *which[how])
    assert (aborted.code, aborted.err) == (0, f"aborted the transaction in {topic}:0\n")
    assert hanging(topic) == []
    assert "no transaction hangs there" in odradek("transactions", "find-hanging").err


def test_what_cannot_be_done_is_reported_in_a_sentence(on_broker: Odradek, created: str) -> None:
    def refusal(*arguments: object) -> str:
        outcome = on_broker("transactions", *arguments, code=1)
        assert outcome.err.startswith("odradek: error: ")
        assert len(outcome.err.splitlines()) == 1
        return outcome.err

    where = f"{created}:0"
    assert "there is none; see: odradek transactions list" in refusal("describe", "no-such-id")
    assert "there is none" in refusal("force-terminate", "no-such-id")
    assert "no state of transactions is called Odd" in refusal("list", "--state", "Odd")
    assert "no regular expression" in refusal("list", "--pattern", "(")
    assert "'soon' is no duration" in refusal("list", "--longer-than", "soon")
    assert "there is no such topic" in refusal("describe-producers", f"{created}-not")
    assert "the cluster has no broker 99" in refusal("find-hanging", "--broker-id", 99)
    assert "is not one partition" in refusal("abort", created, "--start-offset", 1)
    assert "say which: --start-offset" in refusal("abort", where)
    assert "give --producer-epoch" in refusal("abort", where, "--producer-id", 1)
    assert "no open transaction begins at offset 7" in refusal("abort", where, "--start-offset", 7)
