"""The makes that are compared: how one broker of each, or three, are started."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .peers import Failed, Peer
from .ports import free_ports

KAFKA_HEAP = "1g"
KAFKA_CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"


ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
"""ACLs decide who may do what; what has none is open to everybody."""


class Odradek(Peer):
    """This checkout's broker, as anybody starts it; of a cluster, each is a process.

    Args:
        brokers: how many.
        guarded: whether ACLs decide who may do what.
    """

    name = "odradek"

    def __init__(self, brokers: int = 1, *, guarded: bool = False) -> None:
        super().__init__(brokers)
        self._settings = {"default.replication.factor": str(brokers)}
        if guarded:
            self._settings |= ACLS

    def commands(self) -> Sequence[list[str]]:
        serve = [str(Path(sys.executable).with_name("odradek")), "serve"]
        for key, value in self._settings.items():
            serve += ["-o", f"{key}={value}"]
        if len(self.ports) == 1:
            return [[*serve, "--listen", self.address, "--data-dir", str(self.folder / "data")]]
        shared = self.folder / "shared"
        shared.mkdir(exist_ok=True)
        return [
            [
                *(*serve, "--listen", f"127.0.0.1:{port}", "--broker-id", str(number)),
                *("--data-dir", str(self.folder / f"data-{number}"), "--cluster-dir", str(shared)),
            ]
            for number, port in enumerate(self.ports, 1)
        ]


class ApacheKafka(Peer):
    """Apache Kafka with its own defaults; the first broker is the controller, too.

    Args:
        jars: the folder with its jars.
        brokers: how many.
        guarded: whether ACLs decide who may do what.
    """

    name = "Apache Kafka"

    def __init__(self, jars: Path, brokers: int = 1, *, guarded: bool = False) -> None:
        super().__init__(brokers)
        self._settings = ACLS if guarded else {}
        self._class_path = f"{jars}/*"
        (controller,) = free_ports(1)
        self._files = [
            self._properties(number, port, controller) for number, port in enumerate(self.ports, 1)
        ]

    def start(self) -> None:
        if not (self.folder / "data-1").exists():
            for file in self._files:
                self._format(file)
        super().start()

    def commands(self) -> Sequence[list[str]]:
        return [[*self._java(), "kafka.Kafka", str(file)] for file in self._files]

    def _properties(self, number: int, port: int, controller: int) -> Path:
        replicas = str(len(self.ports))
        listener = f"PLAINTEXT://127.0.0.1:{port}"
        settings = {
            "process.roles": "broker",
            "node.id": str(number),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": listener,
            "log.dirs": str(self.folder / f"data-{number}"),
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": "1",
            "default.replication.factor": replicas,
            **self._settings,
        }
        if number == 1:
            settings["process.roles"] = "broker,controller"
            settings["listeners"] = f"{listener},CONTROLLER://127.0.0.1:{controller}"
        file = self.folder / f"server-{number}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return file

    def _format(self, file: Path) -> None:
        tool = ["kafka.tools.StorageTool", "format", "-t", KAFKA_CLUSTER_ID, "-c", str(file)]
        done = subprocess.run([*self._java(), *tool], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"{self.name}'s folder could not be formatted: {done.stderr.strip()}")

    def _java(self) -> list[str]:
        heap = [f"-Xmx{KAFKA_HEAP}", f"-Xms{KAFKA_HEAP}"]
        collector = ["-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]  # as Kafka's own scripts have it
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return ["java", *heap, *collector, quiet, "-cp", self._class_path]


class Kfake(Peer):
    """franz-go's fake cluster, in Go; one process has all its brokers, and keeps all in memory.

    Args:
        program: compiled from `kfake/`.
        brokers: how many.
    """

    name = "kfake"

    def __init__(self, program: Path, brokers: int = 1) -> None:
        super().__init__(brokers)
        self._program = program

    def commands(self) -> Sequence[list[str]]:
        return [[str(self._program), "-ports", ",".join(map(str, self.ports))]]
