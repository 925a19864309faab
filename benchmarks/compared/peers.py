"""The brokers that are compared, each a process, with what the operating system says of it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

HERE = Path(__file__).parent
START_SECONDS_MAX = 60.0
ADMIN_SECONDS_MAX = 30.0
KAFKA_HEAP = "1g"
KAFKA_CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"


class Peer(ABC):
    """One broker, of one make.

    Attributes:
        name: in tables.
        keeps_files: whether its records are on disk.
        ready_seconds: from its start to the first answer.
    """

    name: str
    keeps_files = True

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="odradek-bench-"))
        self.port = _free_port()
        self.ready_seconds = 0.0
        self._topics = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"127.0.0.1:{self.port}"

    @abstractmethod
    def command(self) -> list[str]:
        """The command line."""

    def start(self) -> None:
        """Start it and wait for its first answer.

        Raises:
            SystemExit: it did not start; the text names its log.
        """
        log = (self.folder / "log").open("ab")
        # Compiled bytecode is cached, as it is for anyone who has not turned that off.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        began = time.monotonic()
        with log:
            self._process = subprocess.Popen(
                self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment
            )
        while not answers(self.port):
            if self._process.poll() is not None or time.monotonic() - began > START_SECONDS_MAX:
                raise SystemExit(f"{self.name} did not start: {log.name} says why")
            time.sleep(0.005)
        self.ready_seconds = time.monotonic() - began

    def stop(self) -> None:
        """End it and remove what it kept."""
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def end(self) -> None:
        """End it, and leave its data."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def topic(self, partitions: int = 1) -> str:
        """Make a topic of a new name."""
        self._topics += 1
        name = f"bench-{self._topics}"
        admin = AdminClient({"bootstrap.servers": self.address, "log_level": 2})
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(ADMIN_SECONDS_MAX)
        return name

    def delete(self, topic: str) -> None:
        """Remove a topic and its records."""
        admin = AdminClient({"bootstrap.servers": self.address, "log_level": 2})
        admin.delete_topics([topic])[topic].result(ADMIN_SECONDS_MAX)

    def cpu_seconds(self) -> float:
        """User and system time so far, of all its threads."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mb(self) -> float:
        """Resident memory, in MB of 10^6 bytes."""
        for line in Path(f"/proc/{self._pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024 / 1e6
        raise SystemExit(f"{self.name} is gone")

    @property
    def _pid(self) -> int:
        assert self._process is not None
        return self._process.pid


class Odradek(Peer):
    """This checkout's broker, as anybody starts it."""

    name = "odradek"

    def command(self) -> list[str]:
        command = [sys.executable, "-m", "odradek", "serve", "--listen", self.address]
        return [*command, "--data-dir", str(self.folder / "data")]


class ApacheKafka(Peer):
    """Apache Kafka, broker and controller in one, with its own defaults."""

    name = "Apache Kafka"

    def __init__(self, jars: Path) -> None:
        super().__init__()
        self._class_path = f"{jars}/*"
        self._properties = self.folder / "server.properties"
        controller = _free_port()
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{controller}",
            "log.dirs": str(self.folder / "data"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    def start(self) -> None:
        if (self.folder / "data").exists():
            super().start()
            return
        format_ = [*self._java(), "kafka.tools.StorageTool", "format", "-t", KAFKA_CLUSTER_ID]
        subprocess.run([*format_, "-c", str(self._properties)], check=True, capture_output=True)
        super().start()

    def command(self) -> list[str]:
        return [*self._java(), "kafka.Kafka", str(self._properties)]

    def _java(self) -> list[str]:
        heap = [f"-Xmx{KAFKA_HEAP}", f"-Xms{KAFKA_HEAP}"]
        collector = ["-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]  # as Kafka's own scripts have it
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return ["java", *heap, *collector, quiet, "-cp", self._class_path]


class Kfake(Peer):
    """franz-go's fake cluster, one broker of it, in Go; it keeps all in memory."""

    name = "kfake"
    keeps_files = False

    def __init__(self, program: Path) -> None:
        super().__init__()
        self._program = program

    def command(self) -> list[str]:
        return [str(self._program), "-port", str(self.port)]


def answers(port: int) -> bool:
    """Whether a broker there answers a Metadata request."""
    request = b"\x00\x03\x00\x01\x00\x00\x00\x2a\xff\xff\xff\xff\xff\xff"
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
            sock.sendall(len(request).to_bytes(4, "big") + request)
            return len(sock.recv(4)) == 4
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
