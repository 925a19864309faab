"""The image of deploy/Containerfile, started as its own configuration says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from odradek.testing.process.held_port import HeldPort
from odradek.testing.waiting import wait_until

from .conftest import buildah

READY = "odradek ready at"
TOPIC = "events"


class Container:
    """A container of the image whose broker serves at a port of this machine."""

    def __init__(self, image: str, data: Path, port: int) -> None:
        self.config = configuration(image)
        self.bootstrap_servers = f"127.0.0.1:{port}"
        self._id = buildah("from", image)
        (volume,) = self.config["Volumes"]
        self._process = subprocess.Popen(
            [
                *self._run("--volume", f"{data}:{volume}"),
                *self.config["Entrypoint"],
                *("--listen", self.bootstrap_servers),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _run(self, *options: str) -> list[str]:
        return [
            *("buildah", "run", "--isolation", "chroot", "--network", "host"),
            *options,
            self._id,
            "--",
        ]

    def wait_until_ready(self) -> None:
        """Read what it says, up to the line by which it is ready."""
        assert self._process.stdout is not None
        said = []
        for line in self._process.stdout:
            said.append(line)
            if READY in line:
                return
        raise AssertionError(f"it ended: {''.join(said)}")

    @property
    def broker_pid(self) -> int:
        """The process that no other of the container is under."""
        pid = self._process.pid
        while children := _children(pid):
            (pid,) = children
        return pid

    def is_healthy(self) -> bool:
        """What the image's health check says of it."""
        kind, *command = self.config["Healthcheck"]["Test"]
        assert kind == "CMD"
        return subprocess.run([*self._run(), *command], capture_output=True).returncode == 0

    def stop(self) -> int:
        """Send what the image says is to be sent; the exit code."""
        os.kill(self.broker_pid, signal.Signals[self.config["StopSignal"]])
        return self._process.wait(30)

    def remove(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait(30)
        assert self._process.stdout is not None
        self._process.stdout.close()
        buildah("rm", self._id)


def configuration(image: str) -> dict[str, Any]:
    """How an engine is to start the image."""
    inspected = json.loads(buildah("inspect", "--type", "image", image))
    found: dict[str, Any] = inspected["Docker"]["config"]
    return found


def _children(pid: int) -> list[int]:
    """Those that any of its threads started."""
    of_threads = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for each in of_threads for child in each.read_text().split()]


@contextmanager
def running(image: str, data: Path, port: int) -> Iterator[Container]:
    container = Container(image, data, port)
    try:
        container.wait_until_ready()
        yield container
    finally:
        container.remove()


@pytest.fixture
def data(tmp_path: Path, image: str) -> Path:
    """A volume, which the image's user owns as an engine would have it."""
    folder = tmp_path / "data"
    folder.mkdir()
    os.chown(folder, int(configuration(image)["User"]), 0)
    for above in (tmp_path, *list(tmp_path.parents)[:2]):
        above.chmod(0o755)
    return folder


def test_it_serves_is_well_stops_by_its_signal_and_keeps_its_data(image: str, data: Path) -> None:
    with HeldPort() as held:
        port = held.port
    with running(image, data, port) as container:
        status = Path(f"/proc/{container.broker_pid}/status").read_text()
        (users,) = [line.split()[1:] for line in status.splitlines() if line.startswith("Uid:")]
        assert set(users) == {container.config["User"]} != {"0"}
        assert container.is_healthy()
        producer = Producer({"bootstrap.servers": container.bootstrap_servers})
        producer.produce(TOPIC, b"kept")
        assert producer.flush(30) == 0
        assert container.stop() == 0
        assert not container.is_healthy()
    with running(image, data, port) as container:
        settings = {
            "bootstrap.servers": container.bootstrap_servers,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
        }
        consumer = Consumer(settings)
        consumer.subscribe([TOPIC])
        message = wait_until(lambda: consumer.poll(1), 30, "the record was not read")
        assert (message.error(), message.value()) == (None, b"kept")
        consumer.close()
        assert container.stop() == 0


def test_the_image_has_no_source_and_a_command_line(image: str) -> None:
    container = buildah("from", image)
    try:
        run = ("run", "--isolation", "chroot", container, "--")
        assert buildah(*run, "odradek", "--version").startswith("odradek ")
        found = buildah(
            *run, "sh", "-c", "ls -d /source /opt/odradek/bin/odradek 2>/dev/null; true"
        )
        assert found == "/opt/odradek/bin/odradek"
    finally:
        buildah("rm", container)
