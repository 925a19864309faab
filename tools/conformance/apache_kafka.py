"""Apache Kafka in a process of its own, with the face of `BrokerProcess`."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from ...protocol.api_keys import ApiKey
from ...protocol.errors import ProtocolError
from ...protocol.messages import ApiVersionsRequest
from ...testing.process.broker_process import BrokerProcess, BrokerStartError
from ...testing.process.held_port import HeldPort
from .connection import BlockingConnection

KAFKA_CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
ONE_BROKER_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
KAFKA_START_SECONDS_MAX = 400.0
RETRY_SECONDS = 0.1


class KafkaProcess(BrokerProcess):
    """Apache Kafka in KRaft mode as broker and controller in one.

    Its metadata stands in a folder of its own, so that a full disk under `data_dir` hits
    the logs alone.

    Args:
        libs: a folder with the jars of `kafka_2.13` and its dependencies.
        data_dir: where topics are kept; other files of it lie beside that folder.
        settings: broker settings that stand before `ONE_BROKER_SETTINGS`.
    """

    def __init__(
        self, libs: Path, data_dir: Path, *, settings: Mapping[str, str] | None = None
    ) -> None:
        self._class_path = f"{libs}/*"
        self._properties = data_dir.with_name(f"{data_dir.name}.properties")
        self._ports_held = HeldPort(), HeldPort()
        port, self._controller_port = (held.port for held in self._ports_held)
        super().__init__(data_dir, listen=f"127.0.0.1:{port}", settings=settings)

    def command(self) -> list[str]:
        """The command line of the next start."""
        return [*self._java(), "kafka.Kafka", str(self._properties)]

    def start(self) -> None:
        """Start Kafka, whose folders are formatted first, and wait until it answers.

        Raises:
            BrokerStartError: it ended, or took more than `KAFKA_START_SECONDS_MAX`.
        """
        if not self._properties.exists():
            self._format()
        super().start()

    def _java(self) -> list[str]:
        level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"
        return ["java", "-Xmx512m", level, "-cp", self._class_path]

    def _format(self) -> None:
        assert self.data_dir is not None
        settings = {
            **ONE_BROKER_SETTINGS,
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller_port}",
            "listeners": f"PLAINTEXT://{self.bootstrap},"
            f"CONTROLLER://127.0.0.1:{self._controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "log.dirs": str(self.data_dir),
            "metadata.log.dir": str(self.data_dir.with_name(f"{self.data_dir.name}-metadata")),
            **self.settings,
        }
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        tool = [*self._java(), "kafka.tools.StorageTool", "format", "-t", KAFKA_CLUSTER_ID]
        subprocess.run([*tool, "-c", str(self._properties)], check=True, capture_output=True)

    def _read_ready_line(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until Kafka answers; it says nothing on standard output."""
        deadline = time.monotonic() + KAFKA_START_SECONDS_MAX
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise BrokerStartError(self._failure("ended"))
            with (
                contextlib.suppress(OSError, ProtocolError),
                BlockingConnection(self.bootstrap) as connection,
            ):
                connection.send(ApiVersionsRequest(), 0)
                connection.receive(ApiKey.API_VERSIONS, 0)
                return
            time.sleep(RETRY_SECONDS)
        raise BrokerStartError(self._failure("was not ready in time"))

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        """Ask Kafka to stop, and wait for it; returns its exit code.

        Raises:
            subprocess.TimeoutExpired: it was still there after a while; it has been killed.
        """
        # The JVM exits with 128 + signal after its shutdown hooks.
        code = super().stop(signal_number)
        return 0 if code in (128 + signal_number, -signal_number) else code
