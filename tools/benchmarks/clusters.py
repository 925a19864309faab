"""What the benchmarks of clusters share: three brokers that run, and requests to each."""

from __future__ import annotations

import itertools
import os
import re
import socket
import struct
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from odradek.protocol import messages
from odradek.protocol.headers import read_response_header, request_header
from odradek.protocol.messages import response_message
from odradek.testing.process.broker_process import BrokerProcess

BROKER_IDS = (1, 2, 3)
SECONDS_MAX = 60.0
METADATA_VERSION = 9
POLL_SECONDS = 0.01
"""Between two looks at what a broker says."""


class Asker:
    """One connection to a broker, for one request at a time; a context manager."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=SECONDS_MAX)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._numbers = itertools.count(1)

    def ask(self, request: Any, version: int) -> Any:
        """The answer to a request. Raises OSError."""
        schema = request.schema
        header = request_header(schema.api_key, version, next(self._numbers), "benchmark")
        frame = b"".join([header, *map(bytes, schema.encoder(version)(request))])
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        (size,) = struct.unpack(">i", self._receive(4))
        answer = self._receive(size)
        _, position = read_response_header(answer, schema.api_key, version)
        return response_message(schema.api_key).decoder(version)(answer, position)[0]

    def metadata(self, *, topics: bool = True) -> Any:
        """What the broker says of the cluster, with all topics or without any."""
        request = messages.MetadataRequest(topics=None if topics else [])
        return self.ask(request, METADATA_VERSION)

    def _receive(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            part = self._socket.recv(size - len(received))
            if not part:
                raise ConnectionError("the broker closed the connection")
            received += part
        return bytes(received)

    def __enter__(self) -> Asker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._socket.close()


class ClusterUnderTest:
    """Three brokers that know of each other.

    Attributes:
        addresses: by broker id.
        processes: by broker id; all the same one where they share it.
    """

    def __init__(
        self, addresses: Mapping[int, str], processes: Mapping[int, BrokerProcess]
    ) -> None:
        self.addresses = addresses
        self.processes = processes

    def controller(self) -> int:
        """Who the first broker that runs says is the controller, once all of them know all."""
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            answers = []
            for address in self.addresses.values():
                with Asker(address) as asker:
                    answers.append(asker.metadata(topics=False))
            if {len(each.brokers) for each in answers} == {len(BROKER_IDS)}:
                return int(answers[0].controller_id)
            time.sleep(POLL_SECONDS)
        raise SystemExit("the brokers do not know each other")


class Process:
    """What the operating system says of a process."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")

    def cpu_seconds(self) -> float:
        """User and system time so far, of all its threads."""
        fields = (self._folder / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mb(self) -> float:
        """Resident memory, in MB of 10^6 bytes."""
        return self._status("VmRSS") * 1024 / 1e6

    def wake_ups(self) -> int:
        """How often its first thread, which the loop runs in, waited for something so far."""
        return self._status("voluntary_ctxt_switches")

    def _status(self, name: str) -> int:
        found = re.search(rf"^{name}:\s+(\d+)", (self._folder / "status").read_text(), re.MULTILINE)
        assert found is not None
        return int(found[1])


@contextmanager
def in_one_process() -> Iterator[ClusterUnderTest]:
    """`odradek serve --brokers 3`."""
    with (
        tempfile.TemporaryDirectory(prefix="odradek-bench-") as folder,
        BrokerProcess(Path(folder) / "data", arguments=["--brokers", "3"]) as process,
    ):
        found = re.search(r"ready at (\S+), data", process.ready_line)
        assert found is not None
        addresses = dict(zip(BROKER_IDS, found[1].split(","), strict=True))
        cluster = ClusterUnderTest(addresses, dict.fromkeys(BROKER_IDS, process))
        cluster.controller()
        yield cluster


@contextmanager
def in_three_processes(
    zookeeper: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[ClusterUnderTest]:
    """A process for each, on one file of metadata or on ZooKeeper.

    Args:
        zookeeper: `host:port/chroot`; None: the file.
        settings: for each broker.
    """
    with tempfile.TemporaryDirectory(prefix="odradek-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "shared").mkdir()
        where = ["--cluster-dir", str(folder / "shared")]
        if zookeeper is not None:
            where = ["--zookeeper", zookeeper]
        processes = {
            broker_id: stack.enter_context(
                BrokerProcess(
                    folder / f"broker-{broker_id}",
                    settings=settings,
                    arguments=["--broker-id", str(broker_id), *where],
                )
            )
            for broker_id in BROKER_IDS
        }
        addresses = {broker_id: each.bootstrap for broker_id, each in processes.items()}
        cluster = ClusterUnderTest(addresses, processes)
        cluster.controller()
        yield cluster
