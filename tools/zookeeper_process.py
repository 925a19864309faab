"""A real ZooKeeper server, from the jars that PySpark brings."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

from ..testing.process.held_port import HeldPort

ZOOKEEPER_START_SECONDS_MAX = 120


def jars() -> Path:
    """The folder of PySpark's; it is not imported for that, which takes a while."""
    spec = find_spec("pyspark")
    assert spec is not None, "ZooKeeper is PySpark's: install that"
    assert spec.origin is not None
    return Path(spec.origin).parent / "jars"


class ZooKeeperProcess:
    """One server with a data folder; may be killed and started again on its port.

    Args:
        folder: where its files lie.
        tls: a folder with `server.pem` and `authority.pem`: the server listens for TLS, too, and
            asks every client there for a certificate.
    """

    def __init__(self, folder: Path, tls: Path | None = None) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._held = HeldPort(), HeldPort()
        self.port, self.tls_port = (each.port for each in self._held)
        self._tls = tls
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """host:port."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        java = shutil.which("java")
        assert java is not None, "ZooKeeper needs Java"
        config = self.folder / "zoo.cfg"
        settings = {
            "dataDir": self.folder / "data",
            "clientPort": self.port,
            "clientPortAddress": "127.0.0.1",
            "tickTime": 200,
            "maxClientCnxns": 0,
            "minSessionTimeout": 400,
            "maxSessionTimeout": 60_000,
            "admin.enableServer": "false",
            **self._tls_settings(),
        }
        config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    java,
                    "-Xmx256m",
                    "-Dzookeeper.admin.enableServer=false",
                    # What was written survives the end of the process, if not of the machine.
                    "-Dzookeeper.forceSync=no",
                    "-cp",
                    f"{jars()}/*",
                    "org.apache.zookeeper.server.ZooKeeperServerMain",
                    str(config),
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._wait_until_ready()

    def _tls_settings(self) -> dict[str, object]:
        if self._tls is None:
            return {}
        return {
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "secureClientPort": self.tls_port,
            "secureClientPortAddress": "127.0.0.1",
            "ssl.keyStore.location": self._tls / "server.pem",
            "ssl.keyStore.type": "PEM",
            "ssl.trustStore.location": self._tls / "authority.pem",
            "ssl.trustStore.type": "PEM",
            "ssl.clientAuth": "need",
            # A certificate says who a client is, not from which host.
            "ssl.clientHostnameVerification": "false",
        }

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + ZOOKEEPER_START_SECONDS_MAX
        while time.monotonic() < deadline:
            assert self._process is not None
            assert self._process.poll() is None, (self.folder / "log").read_text()
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1) as probe:
                    probe.sendall(b"srvr")
                    # It answers that it does not serve yet while it reads its data.
                    if probe.recv(4096).startswith(b"Zookeeper version"):
                        return
            except OSError:
                pass
            time.sleep(0.05)  # its own log has no event that we could wait for
        raise AssertionError("ZooKeeper did not start: " + (self.folder / "log").read_text())

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """SIGSTOP: it answers nobody."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)
