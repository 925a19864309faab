"""A Spark cluster of processes on this machine: a master and its workers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from odradek.spark_connector.installation import find_installation

START_SECONDS_MAX = 180.0
LOOK_SECONDS = 0.05
WORKERS = 2
_MASTER_URL = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = "Successfully registered with master"


class StandaloneSpark:
    """A master and two workers of one core each; a context manager that ends them.

    Args:
        folder: for their logs and the folders of the executors.

    Attributes:
        url: of the master.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._home = find_installation().home
        self._stack = ExitStack()
        self.url = ""

    def __enter__(self) -> StandaloneSpark:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def log(self, name: str) -> str:
        """What `master`, `worker-0` or `worker-1` has said."""
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def executors(self) -> dict[str, int]:
        """The process ids of those that run, by the folder of each."""
        found = {}
        for process in Path("/proc").iterdir():
            with suppress(OSError):  # it has ended, or is somebody else's
                if b"CoarseGrainedExecutorBackend" in (process / "cmdline").read_bytes():
                    folder = os.readlink(process / "cwd")
                    if folder.startswith(f"{self._folder}/work-"):
                        found[folder] = int(process.name)
        return found

    def executor_logs(self) -> str:
        """The ends of what the executors have said."""
        paths = sorted(self._folder.glob("work-*/app-*/*/stderr"))
        return "\n".join(f"{path}:\n{path.read_text(errors='replace')[-2000:]}" for path in paths)

    def _start(self) -> None:
        here = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self._begin("master", "org.apache.spark.deploy.master.Master", *here)
        self._wait("master", lambda text: _MASTER_URL.search(text) is not None)
        match = _MASTER_URL.search(self.log("master"))
        assert match is not None
        self.url = match[1]
        for number in range(WORKERS):
            self._begin(
                f"worker-{number}",
                "org.apache.spark.deploy.worker.Worker",
                *here,
                *("--cores", "1", "--memory", "1g"),
                *("--work-dir", str(self._folder / f"work-{number}")),
                self.url,
            )
        for number in range(WORKERS):
            self._wait(f"worker-{number}", lambda text: _REGISTERED in text)

    def _begin(self, name: str, main: str, *arguments: str) -> None:
        environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(self._home / "bin" / "spark-class"), main, *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=self._folder,
                start_new_session=True,  # so that executors end with the worker that began them
            )
        self._stack.callback(_kill, process)

    def _wait(self, name: str, is_so: Callable[[str], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while not is_so(self.log(name)):
            assert time.monotonic() < deadline, f"{name} is not ready:\n{self.log(name)[-3000:]}"
            time.sleep(LOOK_SECONDS)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)
