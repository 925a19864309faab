"""Transactions of 100 records: AddPartitionsToTxn, Produce, EndTxn, one after another."""

from __future__ import annotations

import time
from array import array
from typing import Any

from ...common.errors import ErrorCode
from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ...protocol.records import build_batch
from ...protocol.records.batch import SEQUENCE_MASK
from ..cluster import LoadTopic, TargetCluster, new_name
from ..errors import BenchError
from ..figures import Figures, Measured
from ..target import BenchTarget
from .fetch_load import check_produced
from .load import WARM_UP_SHARE, Load
from .prepared import Produce
from .wire import Wire, check, frame_of

RECORDS_PER_TRANSACTION = 100
VALUE_BYTES = 100
TRANSACTION_TIMEOUT_MS = 60_000
ADD_PARTITIONS_NEWEST = 3
PRODUCE_NEWEST = 11
END_TXN_NEWEST = 4
"""Versions from before KIP-890's second part, which every broker with transactions has, and in
which a transaction is the same three requests everywhere."""
BUSY_SECONDS_MAX = 30.0
PAUSE_SECONDS = 0.0005
"""Before a partition is added again while the last transaction's markers are being written."""


def transactions() -> Load:
    """One producer, one transaction after another."""

    def run(target: BenchTarget, seconds: float) -> Figures:
        transactional_id = new_name()
        with (
            TargetCluster(target) as cluster,
            cluster.topic() as topic,
            cluster.coordinator(transactional_id, 1) as coordinator,
            cluster.connect_leader(topic) as leader,
        ):
            producer = _Producer(cluster, coordinator, leader, topic, transactional_id)
            producer.run(seconds * WARM_UP_SHARE, array("d"))
            with Measured(target) as measured:
                producer.run(seconds, measured.latencies)
        return measured.figures()

    about = (
        f"one producer, one after another, each {RECORDS_PER_TRANSACTION} records of"
        f" {VALUE_BYTES} B: AddPartitionsToTxn, Produce, EndTxn"
    )
    return Load(f"transactions of {RECORDS_PER_TRANSACTION} records", about, run)


class _Producer:
    """A transactional producer that waits for each answer."""

    def __init__(
        self, cluster: TargetCluster, coordinator: Wire, leader: Wire, topic: LoadTopic, name: str
    ) -> None:
        self._coordinator = coordinator
        self._leader = leader
        self._topic = topic
        self._name = name
        self._sequence = 0
        request = messages.InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS
        )
        given = cluster.when_ready(
            lambda: coordinator.ask(request), lambda answer: answer.error_code, "InitProducerId"
        )
        self._id, self._epoch = given.producer_id, given.producer_epoch
        self._add_version = coordinator.version(ApiKey.ADD_PARTITIONS_TO_TXN, ADD_PARTITIONS_NEWEST)
        self._end_version = coordinator.version(ApiKey.END_TXN, END_TXN_NEWEST)
        self._add = frame_of(self._adding(), self._add_version)
        self._end = frame_of(self._ending(), self._end_version)

    def run(self, seconds: float, latencies: array[float]) -> None:
        """Commit transactions for so long. Raises: BenchError."""
        deadline = time.perf_counter() + seconds
        while time.perf_counter() < deadline:
            produce = self._next_produce()
            began = time.perf_counter()
            self._add_partition()
            self._leader.send(produce.frame)
            check_produced(self._leader, produce)
            answer = self._exchange(self._end, ApiKey.END_TXN, self._end_version)
            check(answer.error_code, "EndTxn", self._coordinator.peer)
            latencies.append(time.perf_counter() - began)

    def _next_produce(self) -> Produce:
        now_ms = int(time.time() * 1000)
        batch = build_batch(
            [(None, b"v" * VALUE_BYTES, now_ms, [])] * RECORDS_PER_TRANSACTION,
            producer_id=self._id,
            producer_epoch=self._epoch,
            base_sequence=self._sequence,
            transactional=True,
        )
        self._sequence = (self._sequence + RECORDS_PER_TRANSACTION) & SEQUENCE_MASK
        return Produce(self._leader, self._topic, batch, -1, self._name, PRODUCE_NEWEST)

    def _add_partition(self) -> None:
        """Add the partition, as soon as the transaction before this has ended everywhere."""
        deadline = time.monotonic() + BUSY_SECONDS_MAX
        while True:
            answer = self._exchange(self._add, ApiKey.ADD_PARTITIONS_TO_TXN, self._add_version)
            (topic,) = answer.results_by_topic_v3_and_below
            code = topic.results_by_partition[0].partition_error_code
            if code != ErrorCode.CONCURRENT_TRANSACTIONS:
                check(code, "AddPartitionsToTxn", self._coordinator.peer)
                return
            if time.monotonic() > deadline:
                raise BenchError(
                    f"{self._coordinator.peer} did not end a transaction in {BUSY_SECONDS_MAX:g} s"
                )
            time.sleep(PAUSE_SECONDS)

    def _exchange(self, frame: bytes, api_key: ApiKey, version: int) -> Any:
        self._coordinator.send(frame)
        return self._coordinator.decode(self._coordinator.receive(), api_key, version)

    def _adding(self) -> Any:
        request = messages.AddPartitionsToTxnRequest
        return request(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self._id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[
                request.AddPartitionsToTxnTopic(name=self._topic.name, partitions=[0])
            ],
        )

    def _ending(self) -> Any:
        return messages.EndTxnRequest(
            transactional_id=self._name,
            producer_id=self._id,
            producer_epoch=self._epoch,
            committed=True,
        )
