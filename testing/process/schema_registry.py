"""A schema registry as a process: Apicurio Registry, which has the API of Confluent's.

It is fetched from Maven Central at its first use, and kept in the user's cache.
"""

from __future__ import annotations

import atexit
import http.client
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from .held_port import HeldPort
from .process_end import Guard

if TYPE_CHECKING:
    from typing import Self

VERSION = "3.0.9"
"""The last release that runs on Java 17."""
ARTIFACT = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
JAR_VARIABLE = "ODRADEK_SCHEMA_REGISTRY_JAR"
"""The environment variable that names a jar to run in place of the one in the cache."""
API = "/apis/ccompat/v7"
FETCH_SECONDS_MAX = 600
START_SECONDS_MAX = 240
POLL_INTERVAL_S = 0.1
LOG_TAIL_CHARACTERS = 3000


class SchemaRegistryStartError(Exception):
    """The registry cannot be had, or did not start; the text says what to do."""


class SchemaRegistryProcess:
    """A schema registry on this machine; a context manager that ends it.

    It needs Java 17, and Maven at the first use, which fetches about 100 MB. It ends with this
    process, however that one ends.

    Args:
        bootstrap_servers: of a Kafka that keeps its schemas in a topic; None: they are in memory,
            and gone when it ends.

    Attributes:
        url: of the API that is Confluent's, as clients' `schema.registry.url` has it.

    Raises:
        SchemaRegistryStartError: it cannot be had, or did not start.
    """

    def __init__(self, bootstrap_servers: str | None = None) -> None:
        self._java = _find("java", "it runs on Java 17 or later (Debian's openjdk-17-jre-headless)")
        self._jar = registry_jar()
        self._bootstrap_servers = bootstrap_servers
        self._folder = Path(tempfile.mkdtemp(prefix="odradek-registry-"))
        self._log = self._folder / "log"
        self._held = HeldPort()
        self.url = f"http://{self._held.address}{API}"
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: Guard | None = None
        atexit.register(self.close)
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    @property
    def log(self) -> str:
        """What it has logged, over all its starts."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def is_running(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, again or for the first time, and wait until it answers.

        Raises:
            SchemaRegistryStartError: it ended, or did not answer in time.
        """
        settings = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": self._held.port,
        }
        if self._bootstrap_servers is not None:
            settings["apicurio.storage.kind"] = "kafkasql"
            settings["apicurio.kafkasql.bootstrap.servers"] = self._bootstrap_servers
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(self._java, "-Xmx400m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
                    *(f"-D{name}={value}" for name, value in settings.items()),
                    *("-jar", str(self._jar)),
                ],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        pid, folder = self._process.pid, shlex.quote(str(self._folder))
        self._guard = Guard([os.getpid()], f"kill -KILL {pid}; exec rm -rf -- {folder}")
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._answers():
            if not self.is_running or time.monotonic() > deadline:
                tail = self.log[-LOG_TAIL_CHARACTERS:]
                raise SchemaRegistryStartError(f"the schema registry did not start:\n{tail}")
            time.sleep(POLL_INTERVAL_S)

    def kill(self) -> None:
        """End it at once, as a crash does; its port refuses connections until `start`."""
        process, self._process = self._process, None
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.end()
        if process is not None:
            process.kill()
            process.wait()

    def close(self) -> None:
        """End it, and remove what it kept; it may be called again."""
        atexit.unregister(self.close)
        self.kill()
        self._held.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        kept = f"in topics of {self._bootstrap_servers}" if self._bootstrap_servers else "in memory"
        state = "running" if self.is_running else "not running"
        return f"<schema registry at {self.url}, {state}, schemas {kept}>"

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(self._held.address, timeout=5)
        try:
            # It answers before it has read again what its topics keep, and is ready after that.
            connection.request("GET", "/health/ready")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def registry_jar() -> Path:
    """The jar to run: the one that `JAR_VARIABLE` names, or the cache's, which is fetched once.

    Raises:
        SchemaRegistryStartError: there is none, and it cannot be fetched.
    """
    import fcntl  # not on Windows, where the pytest plugin is used with a Kafka that runs already

    named = os.environ.get(JAR_VARIABLE)
    if named:
        if not Path(named).is_file():
            raise SchemaRegistryStartError(f"{JAR_VARIABLE}={named}: there is no such file")
        return Path(named)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "odradek"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"apicurio-registry-{VERSION}"
    with (cache / "schema-registry.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # workers of xdist fetch it once
        if not folder.exists():
            _fetch(folder)
    (jar,) = folder.glob("*-runner.jar")
    return jar


def _fetch(folder: Path) -> None:
    """Have Maven unpack the release; the folder is there when all of it is."""
    maven = _find(
        "mvn",
        f"it fetches the schema registry once (Debian's maven). Or unpack {ARTIFACT} yourself, and "
        f"name its ...-runner.jar by {JAR_VARIABLE}. Or use the registry in memory that clients "
        "have for tests, mock://",
    )
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        unpacked = Path(temporary) / "app"
        command = [maven, "-q", "-B", "dependency:unpack"]
        command += [f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={unpacked}"]
        try:
            done = subprocess.run(
                command,
                cwd=temporary,
                capture_output=True,
                text=True,
                timeout=FETCH_SECONDS_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise SchemaRegistryStartError(
                f"Maven has not fetched {ARTIFACT} within {FETCH_SECONDS_MAX} s"
            ) from None
        if done.returncode != 0:
            printed = f"{done.stdout}{done.stderr}"[-LOG_TAIL_CHARACTERS:]
            raise SchemaRegistryStartError(f"Maven cannot fetch {ARTIFACT}:\n{printed}")
        unpacked.rename(folder)


def _find(program: str, why: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise SchemaRegistryStartError(f"`{program}` is not installed: {why}")
    return path


if __name__ == "__main__":
    print(registry_jar())
