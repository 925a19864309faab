"""How long a broker takes over an UpdateMetadata of many partitions, and whom it keeps waiting.

    python -m odradek.tools.benchmarks.cluster.update_metadata \\
        [--partitions 10000] [--topics 1000] [--runs 5]

One connection sends the whole state of a cluster as its controller would, in one request;
another asks for ApiVersions every millisecond meanwhile. The longest answer that it waited
for is the longest pause of the broker's loop, and all else that this machine does.
"""

from __future__ import annotations

import argparse
import hmac
import socket
import struct
import threading
import time
from pathlib import Path

import trio

from ....broker.interbroker.registered_brokers import MECHANISM
from ....metadata_store import znodes
from ....metadata_store.choice import METADATA_FILE
from ....metadata_store.embedded.embedded_store import EmbeddedStore
from ....protocol import messages
from ....protocol.headers import request_header
from ....runtime.clock import SystemClock
from ..measure import broker, machine, summary

APPLIED_SECONDS_MAX = 0.050
PAUSE_SECONDS_MAX = 0.010
UPDATE_METADATA_VERSION = 8
REPLICAS = [1, 2, 3]
CONTROLLER_EPOCH = 1 << 20


def encode(message: messages.UpdateMetadataRequest) -> bytes:
    """The request as a frame."""
    header = request_header(6, UPDATE_METADATA_VERSION, 1, "benchmark")
    body = b"".join(
        map(bytes, messages.UpdateMetadataRequest.encoder(UPDATE_METADATA_VERSION)(message))
    )
    return struct.pack(">i", len(header) + len(body)) + header + body


async def elect(metadata: Path) -> bytes:
    """Have the store know the epoch that is used here; returns what brokers know each other by."""
    store = EmbeddedStore(metadata, clock=SystemClock())
    await store.open()
    try:
        await store.set(znodes.CONTROLLER_EPOCH, str(CONTROLLER_EPOCH).encode())
        return (await store.get(znodes.INTER_BROKER_SECRET)).data
    finally:
        await store.close()


def prove(sock: socket.socket, secret: bytes, broker_id: int) -> None:
    """Have a connection known as a broker's."""
    token = MECHANISM
    for _ in range(2):
        header = request_header(36, 0, 1, "benchmark") + struct.pack(">i", len(token)) + token
        sock.sendall(struct.pack(">i", len(header)) + header)
        answer = receive(sock)
        assert answer[4:6] == b"\0\0", f"the broker answered {answer!r}"
        message = MECHANISM + broker_id.to_bytes(4, "big") + answer[12:]
        token = hmac.digest(secret, message, "sha256")


def request(partitions: int, topics: int, port: int, leader_epoch: int) -> bytes:
    """One UpdateMetadata of a cluster of three brokers, in which this one is the first."""
    make = messages.UpdateMetadataRequest
    each = -(-partitions // topics)
    return encode(
        make(
            controller_id=1,
            controller_epoch=CONTROLLER_EPOCH,
            topic_states=[
                make.UpdateMetadataTopicState(
                    topic_name=f"topic-{topic}",
                    topic_id=topic.to_bytes(16, "big"),
                    partition_states=[
                        make.UpdateMetadataPartitionState(
                            partition_index=partition,
                            controller_epoch=1,
                            leader=REPLICAS[partition % 3],
                            leader_epoch=leader_epoch,
                            isr=REPLICAS,
                            zk_version=leader_epoch,
                            replicas=REPLICAS,
                        )
                        for partition in range(each)
                    ],
                )
                for topic in range(1, topics + 1)
            ],
            live_brokers=[
                make.UpdateMetadataBroker(
                    id=broker_id,
                    endpoints=[
                        make.UpdateMetadataEndpoint(
                            port=port + broker_id - 1, host="127.0.0.1", listener="PLAINTEXT"
                        )
                    ],
                )
                for broker_id in REPLICAS
            ],
        )
    )


class Pinger:
    """Asks for ApiVersions every millisecond, and keeps how long each answer took."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        header = request_header(18, 0, 1, "pinger")
        self._frame = struct.pack(">i", len(header)) + header
        self._stop = threading.Event()
        self.seconds: list[float] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Pinger:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._socket.close()

    def _run(self) -> None:
        while not self._stop.wait(0.001):
            began = time.perf_counter()
            self._socket.sendall(self._frame)
            receive(self._socket)
            self.seconds.append(time.perf_counter() - began)


def loop_seconds(pid: int) -> float:
    """The processor time of a process's first thread, which its loop runs in."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def receive(sock: socket.socket) -> bytes:
    """One frame."""
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
        part = sock.recv(1 << 16)
        if not part:
            raise SystemExit("the broker closed the connection")
        data += part
    return data[4:]


def main() -> int:
    """Run, print, and fail if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--topics", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    applied, pauses, quiet, busy = [], [], [], []
    with broker() as running, socket.create_connection((running.host, running.port)) as sock:
        prove(sock, trio.run(elect, running.data / METADATA_FILE), 1)
        for run in range(options.runs):
            frame = request(options.partitions, options.topics, running.port, run)
            with Pinger(running.host, running.port) as pinger:
                time.sleep(0.3)
                quiet.append(max(pinger.seconds))
                pinger.seconds.clear()
                began, worked = time.perf_counter(), loop_seconds(running.process.pid)
                sock.sendall(frame)
                answer = receive(sock)
                applied.append(time.perf_counter() - began)
                busy.append(loop_seconds(running.process.pid) - worked)
            assert answer[4:7] == b"\0\0\0", f"the broker answered {answer!r}"
            pauses.append(max(pinger.seconds))
    print(machine())
    print(f"{options.partitions} partitions of {options.topics} topics, {len(frame)} bytes")
    print(f"first applied in {applied.pop(0) * 1000:8.1f} ms: its topics' settings are read")
    print(f"loop busy  {summary([each * 1000 for each in busy[1:]], 'ms')}   pings included")
    print(f"applied in {summary([each * 1000 for each in applied], 'ms')}   goal 50")
    print(f"pause      {summary([each * 1000 for each in pauses], 'ms')}   goal 10")
    print(f"undisturbed{summary([each * 1000 for each in quiet], 'ms')}")
    good = sorted(applied)[len(applied) // 2] <= APPLIED_SECONDS_MAX
    return 0 if good and sorted(pauses)[len(pauses) // 2] <= PAUSE_SECONDS_MAX else 1


if __name__ == "__main__":
    raise SystemExit(main())
