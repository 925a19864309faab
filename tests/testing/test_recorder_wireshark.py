"""Wireshark's own dissectors over what the recorder writes for them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer

from odradek.testing import Broker
from odradek.testing.recorder.running_recorder import Recorder

OF_KAFKA_2 = (2, 0)
"""Requests as for this version: those of later ones are not known to every Wireshark."""

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def tshark() -> str:
    path = shutil.which("tshark")
    if path is None:
        pytest.fail("`tshark` is not installed: install Debian's tshark.", pytrace=False)
    return path


@pytest.fixture(scope="module")
def packets(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A conversation between kafka-python and a broker, and the broker's port."""
    path = tmp_path_factory.mktemp("recorded") / "run.pcapng"
    with (
        Broker() as broker,
        Recorder(broker.bootstrap_servers, pcap=path) as recorder,
    ):
        settings = {"bootstrap_servers": recorder.bootstrap_servers, "api_version": OF_KAFKA_2}
        producer = KafkaProducer(**settings, enable_idempotence=False)
        for size in (5, 200_000):
            producer.send("orders", b"v" * size).get(90)
        producer.close()
        consumer = KafkaConsumer(
            "orders",
            **settings,
            group_id="readers",
            auto_offset_reset="earliest",
            consumer_timeout_ms=120_000,
        )
        assert [len(next(consumer).value) for _ in range(2)] == [5, 200_000]
        consumer.close()
        return path, broker.port


def dissected(tshark: str, packets: tuple[Path, int], *fields: str, only: str) -> list[list[str]]:
    path, port = packets
    options = [f"-dtcp.port=={port},kafka", "-otcp.check_checksum:TRUE", "-oip.check_checksum:TRUE"]
    options += ["-r", str(path), "-Y", only, "-Tfields"]
    for field in fields:
        options += ["-e", field]
    done = subprocess.run(
        [tshark, *options], capture_output=True, text=True, timeout=240, check=True
    )
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_wireshark_finds_no_fault_with_the_packets(tshark: str, packets: tuple[Path, int]) -> None:
    # Within JoinGroup and SyncGroup it takes what consumers say to each other for malformed: it
    # knows another version of that.
    known = "!(kafka.api_key in {11, 14})"
    fields = ("frame.number", "kafka.api_key")
    assert dissected(tshark, packets, *fields, only=f"_ws.malformed && {known}") == []
    assert dissected(tshark, packets, "frame.number", only="tcp.analysis.flags") == []
    checksums = dissected(tshark, packets, "ip.checksum.status", "tcp.checksum.status", only="tcp")
    assert len(checksums) > 20
    assert {tuple(each) for each in checksums} == {("1", "1")}


def test_wireshark_reads_the_messages(tshark: str, packets: tuple[Path, int]) -> None:
    requested = dissected(tshark, packets, "kafka.request_key", "kafka.topic_name", only="kafka")
    keys = {each[0] for each in requested}
    assert {"0", "1", "3", "10", "11", "14"} <= keys
    assert ["0", "orders"] in requested
    answers = dissected(tshark, packets, "kafka.response_key", "kafka.error", only="kafka")
    assert {"0", "1", "3", "10", "11", "14"} <= {each[0] for each in answers}
