"""`odradek record` and `odradek replay` as programs: what they show, keep, and end with."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

from kafka import KafkaProducer
from support.ports import nobody_listens
from support.scripted_upstream import SECONDS_MAX, ScriptedUpstream, framed, receive_frame

from odradek.testing import Broker
from odradek.testing.recorder.addresses import Address

ODRADEK = [sys.executable, "-m", "odradek"]
READY = re.compile(r"recording \S+ at (\S+), until Ctrl-C\n")
ASKED = struct.pack(">hhi", 999, 7, 1) + b"to be kept"


class Recording:
    """`odradek record` as a process of its own; a context manager that ends it."""

    def __init__(self, upstream: str, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [*ODRADEK, "record", "--upstream", upstream, "--listen", "127.0.0.1:0"]
            + [str(argument) for argument in arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        found = READY.fullmatch(line)
        assert found is not None, line + self.process.stderr.read()
        self.address = found[1]

    def end(self, signal_number: int = signal.SIGINT) -> tuple[str, str]:
        self.process.send_signal(signal_number)
        return self.process.communicate(timeout=SECONDS_MAX)

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ODRADEK, *map(str, arguments)], capture_output=True, text=True, timeout=200, check=False
    )


def test_traffic_is_shown_kept_and_replayed(broker: Broker, tmp_path: Path) -> None:
    capture, packets = tmp_path / "run.capture", tmp_path / "run.pcapng"
    files = ("--out", capture, "--pcap", packets)
    with Recording(broker.bootstrap_servers, *files) as recording:
        producer = KafkaProducer(bootstrap_servers=recording.address, client_id="shop")
        producer.send("orders", b"value").get(60)
        producer.close()
        out, err = recording.end()
        assert recording.process.returncode == 0
    lines = out.splitlines()
    produced = next(line for line in lines if "-> Produce" in line)
    assert re.match(r"\d\d:\d\d:\d\d\.\d\d\d \d+ -> Produce v\d+ #\d+ \(shop\) ", produced)
    assert "name=orders" in produced
    assert "1 record in 1 batch" in produced
    assert any(re.search(r"<- Produce v\d+ #\d+ [\d.]+ ms .*base_offset=0", line) for line in lines)
    assert re.search(r"recorded \d+ frames of \d+ connections to \S+capture and \S+pcapng\n", err)
    with Broker() as other:
        same = run("replay", capture, "--bootstrap-server", other.bootstrap_servers)
    assert (same.returncode, same.stdout) == (0, "")
    assert re.search(r"replayed \d+ requests, compared \d+ answers: 0 differences\n", same.stderr)
    with Broker({"num.partitions": "3"}) as other:
        differing = run("replay", capture, "-b", other.bootstrap_servers, "--json")
    assert differing.returncode == 1
    paths = {json.loads(line)["path"] for line in differing.stdout.splitlines()}
    assert paths
    assert all(path.startswith("topics[0].partitions") for path in paths)


def test_full_shows_every_field_and_record(broker: Broker) -> None:
    with Recording(broker.bootstrap_servers, "--full") as recording:
        producer = KafkaProducer(bootstrap_servers=recording.address)
        producer.send("words", b"a value", key=b"a key", headers=[("h", b"\xff")]).get(60)
        producer.close()
        out, _ = recording.end(signal.SIGTERM)
        assert recording.process.returncode == 0
    assert re.search(r"^    topic_data:\n      - name: words\n", out, re.MULTILINE)
    assert '0: key: "a key" value: "a value" headers: {h=base64 /w==}' in out
    assert re.search(r"^    transactional_id: null$", out, re.MULTILINE)


def test_a_capture_whose_recorder_was_killed_is_replayed_up_to_there(tmp_path: Path) -> None:
    capture = tmp_path / "capture"
    with (
        ScriptedUpstream(lambda frame: framed(frame[4:8])) as upstream,
        Recording(upstream.address, "--out", capture, "--quiet") as recording,
        socket.create_connection(Address.parse(recording.address), SECONDS_MAX) as connection,
    ):
        connection.sendall(framed(ASKED))
        receive_frame(connection)
        recording.end(signal.SIGKILL)
    assert b"to be kept" in capture.read_bytes()
    os.truncate(capture, capture.stat().st_size - 1)
    with Broker() as broker:
        outcome = run("replay", capture, "-b", broker.bootstrap_servers)
    assert outcome.returncode == 0
    assert f"{capture} breaks off at byte" in outcome.stderr
    assert "replayed 1 request, compared 0 answers: 0 differences" in outcome.stderr


def test_an_upstream_that_is_not_there_is_said_so_at_once() -> None:
    with nobody_listens() as address, Recording(address, "--quiet") as recording:
        assert recording.process.stderr is not None
        assert recording.process.stderr.readline() == (
            f"no broker answers at {address} yet; clients can connect once one does\n"
        )
        _, err = recording.end()
        assert err == "recorded 0 frames of 0 connections\n"
        assert recording.process.returncode == 0


def test_who_has_read_enough_ends_the_recorder_quietly(broker: Broker) -> None:
    with Recording(broker.bootstrap_servers) as recording:
        assert recording.process.stdout is not None
        recording.process.stdout.close()
        with contextlib.suppress(ConnectionError):  # it may have gone by its first line
            socket.create_connection(Address.parse(recording.address), SECONDS_MAX).close()
        recording.process.wait(SECONDS_MAX)
        assert recording.process.stderr is not None
        assert "Traceback" not in recording.process.stderr.read()
        recording.process.stdout = None
