"""The console beside a broker: a process of its own, a client of the broker like any other.

So it takes nothing from the broker's loop, and a broker without it imports nothing for it. It ends
with the process that started it, for it reads that process's end of a pipe.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from ...config.definition import ConfigError

END_SECONDS_MAX = 5.0
NEEDS = ("starlette", "hypercorn", "jinja2")


class ConsoleProcess:
    """Runs `odradek console` once there is a broker; a context manager that ends it.

    Args:
        listen: where it serves, HOST:PORT.
        may_write: whether anything may be changed there.
        options: further words of its command line.

    Raises:
        ConfigError: its packages are not installed, or the address is none.
    """

    def __init__(self, listen: str, options: Sequence[str] = (), *, may_write: bool) -> None:
        for package in NEEDS:
            if find_spec(package) is None:
                raise ConfigError(f"--console needs {package}: install odradek[console].")
        host, _, port = listen.rpartition(":")
        if not (host and port.isdecimal() and int(port) < 65_536):
            raise ConfigError(f"--console {listen}: write it as HOST:PORT.")
        self._arguments = ["--listen", listen, *options]
        if may_write:
            self._arguments.append("--console-write")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, addresses: str, metrics: Sequence[str] = ()) -> None:
        """Have it look at these brokers. It says itself where it is, or why it is not.

        Args:
            addresses: HOST:PORT each, with commas between.
            metrics: where their metrics are.
        """
        program = [sys.executable, "-m", __name__.partition(".")[0], "console"]
        sources = [word for url in metrics for word in ("--metrics", url)]
        options = ["--ends-with-input", "--bootstrap-server", addresses, *sources]
        self._process = subprocess.Popen(
            [*program, *options, *self._arguments],
            stdin=subprocess.PIPE,
        )

    def __enter__(self) -> ConsoleProcess:
        return self

    def __exit__(self, *_: object) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
