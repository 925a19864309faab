"""Apicurio Registry as a process, whose schemas are records of a broker's topic (kafkasql)."""

from __future__ import annotations

import http.client
import shutil
import subprocess
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.testing.process.held_port import HeldPort

if TYPE_CHECKING:
    from typing import Self

PROJECT = Path(__file__).parents[1] / "interop" / "apicurio"
FETCH_SECONDS_MAX = 600
START_SECONDS_MAX = 240
POLL_S = 0.2
API = "/apis/ccompat/v7"


class ApicurioRegistry:
    """The registry; a context manager that ends it.

    Args:
        bootstrap: of the broker that keeps its schemas.
        folder: for its log.
    """

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self._held = HeldPort()
        self._log = folder / "apicurio.log"
        self._bootstrap = bootstrap
        self.url = f"http://{self._held.address}{API}"
        """Of the API that is Confluent's."""
        self.start()

    def start(self) -> None:
        """Start it, again or for the first time, and wait until it has read its schemas."""
        java = shutil.which("java")
        assert java is not None, "`java` is not installed: install a JDK of 17 or later"
        (jar,) = _application().glob("*-runner.jar")
        settings = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": self._held.port,
            "apicurio.storage.kind": "kafkasql",
            "apicurio.kafkasql.bootstrap.servers": self._bootstrap,
        }
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(java, "-Xmx400m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
                    *(f"-D{name}={value}" for name, value in settings.items()),
                    *("-jar", str(jar)),
                ],
                cwd=self._log.parent,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._answers():
            is_over = self._process.poll() is not None or time.monotonic() > deadline
            assert not is_over, f"Apicurio did not start: {self._log.read_text()[-3000:]}"
            time.sleep(POLL_S)

    def kill(self) -> None:
        """End it at once, as a crash does; its port refuses connections then."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._held.close()

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(self._held.address, timeout=5)
        try:
            connection.request("GET", f"{API}/subjects")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


@cache
def _application() -> Path:
    """The folder of the application, fetched by Maven."""
    maven = shutil.which("mvn")
    assert maven is not None, "`mvn` is not installed: install Maven, such as Debian's maven"
    done = subprocess.run(
        [maven, "-q", "-B", "dependency:unpack"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=FETCH_SECONDS_MAX,
    )
    assert done.returncode == 0, f"Maven failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return PROJECT / "target" / "app"
