"""Kafka's decoders read what our coordinators write of transactions, and find what Kafka writes.

The same requests are sent to a broker of ours and to a Kafka; `DumpLogSegments` decodes
`__transaction_state` and `__consumer_offsets` of both, which must hold the same records in the
same order, but for times and the producer ids that happened to be next.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient
from support.dump_log_segments import dump_log_segments
from support.java_tools import JavaTools
from support.kafka_process import KafkaProcess
from support.transaction_peer import GROUP, READ_UNCOMMITTED, TransactionPeer, settled

from odradek.cli.main import main
from odradek.common.errors import ErrorCode
from odradek.testing.process.broker_process import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

SETTINGS = {
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "transactional.id.expiration.ms": "600000",
    # A Kafka that gives its broker up on a busy machine raises the epoch of its coordinator.
    "broker.session.timeout.ms": "120000",
}
TOPIC = "in-transactions"
FIRST, SECOND = "first-generation", "second-generation"
TIMES = {"transactionLastUpdateTimestampMs", "transactionStartTimestampMs", "commitTimestamp"}
IDS = {"producerId", "previousProducerId", "nextProducerId"}
RECORD = re.compile(
    r"\| offset: \d+ .*?headerKeys: \[\]"
    r"(?: key: (?P<key>\{.*?\})(?: payload: (?P<value>\{.*\}|<DELETE>|null))?$"
    r"| endTxnMarker: (?P<marker>\w+) coordinatorEpoch: (?P<epoch>\d+)$)"
)
NONE = ErrorCode.NONE


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a broker of ours that was told of transactions."""
    path = tmp_path_factory.mktemp("ours") / "data"
    with BrokerProcess(path, settings=SETTINGS) as broker:
        live(broker)
    return path


@pytest.fixture(scope="module")
def theirs(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a Kafka that was told the same."""
    path = tmp_path_factory.mktemp("theirs") / "data"
    with KafkaProcess(kafka_libs, path, settings=SETTINGS) as broker:
        live(broker)
    return path


def live(broker: BrokerProcess) -> None:
    """Transactions of both generations that come to either end, and one that is taken over."""
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        requested = {"num_partitions": 2, "replication_factor": 1}
        admin.create_topics({TOPIC: requested}, wait_for_metadata=True)
    first = TransactionPeer(broker.port, FIRST).start(timeout_ms=300_000)
    for partition in range(2):
        first.end_offset(TOPIC, partition, isolation=READ_UNCOMMITTED)
    first.find_coordinator(GROUP, "group")
    for committed in (True, False):
        added = first.add_partitions({TOPIC: [0]})
        assert set(added.values()) == {NONE}
        settled(lambda: (first.write(TOPIC),))
        settled(lambda: (first.add_offsets("group"),))
        commit_offsets(first, {(TOPIC, 0): 3 + committed, (TOPIC, 1): 7}, metadata="here")
        assert first.end(committed=committed).error == NONE
        first.wait_state("CompleteCommit" if committed else "CompleteAbort")
    second = TransactionPeer(broker.port, SECOND).start(timeout_ms=300_000)
    for committed in (True, False):
        settled(lambda: (second.write(TOPIC, 1, version=12),))
        commit_offsets(second, {(TOPIC, 1): 9}, version=5)
        assert second.end(committed=committed, version=5).error == NONE
        second.wait_state("CompleteCommit" if committed else "CompleteAbort")
    assert second.end(committed=False, version=5).error == NONE  # of nothing
    second.wait_state("CompleteAbort")
    settled(lambda: (second.write(TOPIC, version=12),))
    second.start()  # takes its own transaction over
    settled(
        lambda: second.init(producer_id=second.producer_id, producer_epoch=second.producer_epoch)
    )
    second.wait_stable(TOPIC)
    first.close()
    second.close()


def commit_offsets(
    peer: TransactionPeer, offsets: dict[tuple[str, int], int], version: int = 4, metadata: str = ""
) -> None:
    """Commit them as soon as the group's coordinator has loaded, which refuses them before."""

    def commit() -> tuple[ErrorCode]:
        answered = peer.commit_offsets("group", offsets, version, metadata=metadata)
        (error,) = set(answered.values())
        return (error,)

    settled(commit)


def log_of(folder: Path, topic: str) -> list[Path]:
    found = sorted(folder.rglob(f"{topic}-0/*.log"))
    assert found
    return found


def decoded(tools: JavaTools, folder: Path, topic: str, option: str) -> list[Any]:
    """The records that Kafka's tool shows: keys, values, markers; without times, ids by order."""
    output = dump_log_segments(tools, log_of(folder, topic), option).output
    records: list[Any] = []
    order: dict[int, int] = {-1: -1}
    for line in output.splitlines():
        if not line.startswith("| "):
            continue
        parts = RECORD.match(line)
        assert parts is not None, line
        if parts["marker"]:
            records.append((parts["marker"], int(parts["epoch"])))
            continue
        value = parts["value"]
        is_record = value is not None and value.startswith("{")
        body = json.loads(value) if is_record else {"data": None}
        for name, number in (body["data"] or {}).items():
            if name in IDS:
                body["data"][name] = order.setdefault(number, len(order))
            elif name in TIMES:
                body["data"][name] = number > 0
        if is_record and body["data"].get("transactionPartitions"):
            body["data"]["transactionPartitions"] = sorted(
                (topic["topic"], sorted(topic["partitionIds"]))
                for topic in body["data"]["transactionPartitions"]
            )
        records.append((json.loads(parts["key"]), body))
    return records


def test_the_states_of_transactions_are_those_that_kafka_writes(
    tools: JavaTools, ours: Path, theirs: Path
) -> None:
    arguments = ("__transaction_state", "--transaction-log-decoder")
    mine = decoded(tools, ours, *arguments)
    assert mine == decoded(tools, theirs, *arguments)
    statuses = {
        name: [
            value["data"]["transactionStatus"]
            for key, value in mine
            if key["data"]["transactionalId"] == name
        ]
        for name in (FIRST, SECOND)
    }
    empty, ongoing, prepare_commit, prepare_abort, complete_commit, complete_abort = range(6)
    assert statuses[FIRST] == [
        *(empty, ongoing, ongoing, prepare_commit, complete_commit),
        *(ongoing, ongoing, prepare_abort, complete_abort),
    ]
    assert statuses[SECOND][:9] == [
        *(empty, ongoing, ongoing, prepare_commit, complete_commit),
        *(ongoing, ongoing, prepare_abort, complete_abort),
    ]
    assert statuses[SECOND][9:] == [
        *(prepare_abort, complete_abort),
        *(ongoing, prepare_abort, complete_abort, empty, empty),
    ]


def test_offsets_in_transactions_are_those_that_kafka_writes(
    tools: JavaTools, ours: Path, theirs: Path
) -> None:
    arguments = ("__consumer_offsets", "--offsets-decoder")
    mine = decoded(tools, ours, *arguments)
    assert mine == decoded(tools, theirs, *arguments)
    markers = [kind for kind, _ in mine if isinstance(kind, str)]
    assert markers == ["COMMIT", "ABORT"] * 2
    offsets = [
        value["data"]["offset"]
        for key, value in mine
        if not isinstance(key, str) and key["type"] == "1"
    ]
    assert offsets == [4, 7, 3, 7, 9, 9]


def test_kafkas_decoder_and_ours_agree(
    tools: JavaTools,
    ours: Path,
    theirs: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for folder in (ours, theirs):
        paths = log_of(folder, "__transaction_state")
        shown = dump_log_segments(tools, paths, "--transaction-log-decoder").output
        of_kafka = [
            {name.lower(): value for name, value in json.loads(parts["value"])["data"].items()}
            for parts in map(RECORD.match, shown.splitlines())
            if parts is not None
        ]
        assert main(["log", "dump", "--transactions", "--json", *map(str, paths)]) == 0
        of_odradek = [
            {
                name.replace("_", ""): value
                for name, value in record["decoded"]["value"].items()
                if name != "transaction_partitions"
            }
            for record in map(json.loads, capsys.readouterr().out.splitlines())
            if record["type"] == "record"
        ]
        assert len(of_kafka) == len(of_odradek) > 20
        for theirs_shown, ours_shown in zip(of_kafka, of_odradek, strict=True):
            # Kafka leaves out what a tagged field has by default.
            assert {
                name: value
                for name, value in theirs_shown.items()
                if name != "transactionpartitions"
            }.items() <= ours_shown.items()
