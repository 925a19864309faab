"""A peer: one broker or a cluster of them, as processes, with what the operating system says."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka import admin as kafka_admin
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from .ports import brokers_known, free_ports

PEER_START_SECONDS_MAX = 180.0
END_SECONDS_MAX = 30.0
ADMIN_SECONDS_MAX = 60.0
LOG_BYTES_TOLD = 500


class Failed(Exception):
    """A broker, or a program beside it, failed; the text says how."""


class Peer(ABC):
    """Brokers of one make: one of them, or a cluster.

    Args:
        brokers: how many.

    Attributes:
        name: in tables.
        folder: for what it keeps.
        ports: one for each broker, at 127.0.0.1.
        ready_seconds: from its start until each of its brokers knows all of them.
    """

    name: str

    def __init__(self, brokers: int = 1) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="odradek-bench-"))
        self.ports = free_ports(brokers)
        self.ready_seconds = 0.0
        self._topics = 0
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def address(self) -> str:
        """`host:port`; of a cluster all of them, with commas between."""
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    @property
    def pid(self) -> int:
        """Of its first process. Raises Failed where it has none."""
        if not self._processes:
            raise Failed(f"{self.name} does not run")
        return self._processes[0].pid

    @abstractmethod
    def commands(self) -> Sequence[list[str]]:
        """The command line of each of its processes; the last one is ended first."""

    def start(self) -> None:
        """Start it and wait until it can be used.

        Raises:
            Failed: it did not start; the text has the end of its log.
        """
        began = time.monotonic()
        self.launch()
        while not all(brokers_known(port) == len(self.ports) for port in self.ports):
            if not self.runs():
                raise Failed(f"{self.name} did not start: {self._last_words()}")
            if time.monotonic() - began > PEER_START_SECONDS_MAX:
                raise Failed(f"{self.name} was not ready within {PEER_START_SECONDS_MAX:.0f} s")
            time.sleep(0.005)
        self.ready_seconds = time.monotonic() - began

    def launch(self) -> None:
        """Start its processes, and wait for nothing."""
        # Compiled bytecode is cached, as it is for anyone who has not turned that off.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        for number, command in enumerate(self.commands()):
            with (self.folder / f"log-{number}").open("ab") as log:
                process = subprocess.Popen(
                    command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment
                )
            self._processes.append(process)

    def stop(self) -> None:
        """End it and remove what it kept."""
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def end(self, *, at_once: bool = False) -> None:
        """End it, and leave its data.

        Args:
            at_once: as a crash does.
        """
        while self._processes:
            process = self._processes.pop()
            if at_once:
                process.kill()
            else:
                process.terminate()
            try:
                process.wait(END_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def runs(self) -> bool:
        """Whether all its processes do."""
        return bool(self._processes) and all(each.poll() is None for each in self._processes)

    def topic(self, partitions: int = 1) -> str:
        """Make a topic of a new name, with a replica on each broker.

        Raises:
            Failed: it could not be made.
        """
        self._topics += 1
        name = f"bench-{self._topics}"
        topic = NewTopic(name, partitions, len(self.ports))
        admin = self._admin()
        try:
            admin.create_topics([topic])[name].result(ADMIN_SECONDS_MAX)
        except (KafkaException, TimeoutError) as error:
            raise Failed(f"{self.name} made no topic: {error}") from error
        self._wait_until_led(admin, name, partitions)
        return name

    def _wait_until_led(self, admin: AdminClient, topic: str, partitions: int) -> None:
        """A broker of Kafka's says that a topic is made a moment before it leads it."""
        offset_spec: Any = kafka_admin.OffsetSpec  # type: ignore[attr-defined]  # not in its __all__
        spec = offset_spec.latest()
        ends = {TopicPartition(topic, number): spec for number in range(partitions)}
        deadline = time.monotonic() + ADMIN_SECONDS_MAX
        while True:
            try:
                for answer in admin.list_offsets(ends).values():
                    answer.result(ADMIN_SECONDS_MAX)
                return
            except (KafkaException, TimeoutError) as error:
                if time.monotonic() > deadline:
                    text = f"{self.name} does not lead a topic that it made: {error}"
                    raise Failed(text) from error
            time.sleep(0.01)

    def delete(self, topic: str) -> None:
        """Remove a topic and its records.

        Raises:
            Failed: it could not be removed.
        """
        admin = self._admin()
        try:
            admin.delete_topics([topic])[topic].result(ADMIN_SECONDS_MAX)
        except (KafkaException, TimeoutError) as error:
            raise Failed(f"{self.name} did not delete a topic: {error}") from error

    def cpu_seconds(self) -> float:
        """User and system time so far, of all threads of all its processes.

        Raises:
            Failed: a process of it has ended.
        """
        ticks = 0
        for process in self._processes:
            fields = self._proc_file(process, "stat").rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def resident_mb(self) -> float:
        """Resident memory of all its processes, in MB of 10^6 bytes.

        Raises:
            Failed: a process of it has ended.
        """
        kilobytes = 0
        for process in self._processes:
            lines = self._proc_file(process, "status").splitlines()
            found = [int(line.split()[1]) for line in lines if line.startswith("VmRSS:")]
            if not found:  # it ended, and its exit status is not read yet
                raise Failed(f"{self.name} has ended")
            kilobytes += found[0]
        return kilobytes * 1024 / 1e6

    def _last_words(self) -> str:
        """The end of the log of the process that ended first."""
        ended = [number for number, each in enumerate(self._processes) if each.poll() is not None]
        log = (self.folder / f"log-{ended[0]}").read_bytes()[-LOG_BYTES_TOLD:]
        return log.decode(errors="replace").strip() or "it said nothing"

    def _proc_file(self, process: subprocess.Popen[bytes], file: str) -> str:
        try:
            return Path(f"/proc/{process.pid}/{file}").read_text()
        except OSError as error:
            raise Failed(f"{self.name} has ended") from error

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address, "log_level": 2})
