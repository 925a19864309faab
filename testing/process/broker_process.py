"""A broker in a process of its own: started, stopped, killed and started again by a test.

`BrokerProcess` runs `python -m odradek serve` and waits for the line that says the broker is
ready. No Python object is shared with the broker: what a client sees is what any client of
any language would see.
"""

from __future__ import annotations

import atexit
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .held_port import HeldPort
from .process_end import is_alive

if TYPE_CHECKING:
    from typing import Self

READY_PREFIX = b"odradek ready at "
METRICS_PREFIX = b"metrics at "
CONTROL_PREFIX = b"control at "
START_SECONDS_MAX = 120.0
STOP_SECONDS_MAX = 60.0
LOG_TAIL_BYTES = 4000
"""How much of the log an error message of ours repeats."""


class BrokerStartError(Exception):
    """The broker ended, or stayed silent, before it was ready; the message holds its log."""


class BrokerProcess:
    """A broker process on this machine; a context manager that stops it at the end.

    The first start takes the port that `listen` names (0: any free one); every later start
    takes that same port again, so that clients find the broker where it was. While it is down
    the port is held for it, so that no other program gets it.

    Args:
        data_dir: where topics are kept; None: in a temporary folder (`--ephemeral`).
        listen: HOST:PORT of the listener; ignored if `settings` has `listeners`.
        settings: broker settings by Kafka's names.
        arguments: further arguments of `odradek serve`.
        log_path: where the broker's standard error goes, appended to over restarts; by
            default beside the data folder, or in the system's temporary folder.
        start: whether to start it now.

    Attributes:
        metrics_urls: where its metrics are, of each broker in the process, if `arguments` ask for
            them with `--metrics`.
        control_address: where its control channel is, if it has one.

    Raises:
        BrokerStartError: it did not become ready.
    """

    _process: subprocess.Popen[bytes] | None = None
    _held: HeldPort | None = None
    own_session = False
    """Whether a Ctrl-C on the terminal passes it by."""

    _parent = 0

    def __init__(
        self,
        data_dir: Path | None = None,
        *,
        listen: str = "127.0.0.1:0",
        settings: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        log_path: Path | None = None,
        start: bool = True,
    ) -> None:
        __tracebackhide__ = True
        self.data_dir = data_dir
        self.settings = dict(settings or {})
        self.arguments = list(arguments)
        self.log_path = log_path or _default_log_path(data_dir)
        self.ready_line = ""
        self.metrics_urls: list[str] = []
        self.control_address = ""
        self._host, _, port = listen.rpartition(":")
        self._port = int(port)
        if start:
            self.start()

    @property
    def port(self) -> int:
        """The port of the first listener."""
        return self._port

    @property
    def bootstrap(self) -> str:
        """The address to give to clients as their bootstrap server."""
        return f"{self._host}:{self._port}"

    @property
    def pid(self) -> int:
        """The process id.

        Raises:
            RuntimeError: the broker is not running.
        """
        return self._running().pid

    @property
    def is_running(self) -> bool:
        """Whether the process was started and has not ended."""
        if self._process is not None and self._is_forked:
            return is_alive(self._process.pid)  # only its parent can ask for more
        return self._process is not None and self._process.poll() is None

    @property
    def _is_forked(self) -> bool:
        """Whether this is a copy of the object in a fork of the process that started the broker.

        The broker is not its own: a fork that ends must leave it to the one that has it.
        """
        return self._parent not in (0, os.getpid())

    @property
    def log(self) -> str:
        """What the broker has logged so far, over all its starts."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def start(self) -> None:
        """Start the broker and wait until it is ready.

        Raises:
            BrokerStartError: it ended, or took more than `START_SECONDS_MAX`.
        """
        __tracebackhide__ = True  # pytest shows the test's line, not ours
        if self.is_running:
            raise RuntimeError("the broker is running already")
        self._parent = os.getpid()
        self._hold_port()
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                bufsize=0,  # a line that was read ahead would not wake the selector
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=self.own_session,
                env=self.environment(),
            )
        atexit.register(self.kill)
        try:
            self._read_ready_line(self._process)
        except BaseException:
            self.kill()
            raise

    def _hold_port(self) -> None:
        """Keep the port of the next start for this broker, from before its first one.

        What `settings` or `--brokers` say of ports is theirs; a name may have several addresses.
        """
        is_theirs = "listeners" in self.settings or "--brokers" in self.arguments
        if self._held is not None or is_theirs or not self._host[:1].isdigit():
            return
        try:
            held = HeldPort(self._port, self._host)
        except OSError:
            return  # the broker itself says best what is wrong with the address
        if held.is_held:
            self._held, self._port = held, held.port

    def let_go_of_port(self) -> None:
        """Have the port given to others again, once the broker is down."""
        if self._held is not None:
            self._held.close()
            self._held = None

    def environment(self) -> dict[str, str] | None:
        """The environment of the next start; None: this process's own."""
        return None

    def command(self) -> list[str]:
        """The command line of the next start."""
        command = [sys.executable, "-m", "odradek", "serve"]
        if "listeners" not in self.settings:
            command += ["--listen", self.bootstrap]
        command += ["--ephemeral"] if self.data_dir is None else ["--data-dir", str(self.data_dir)]
        for key, value in self.settings.items():
            command += ["-o", f"{key}={value}"]
        return command + self.arguments

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        """Ask the broker to stop, and wait for it; returns its exit code.

        Args:
            signal_number: SIGTERM, or SIGINT as Ctrl-C sends.

        Raises:
            subprocess.TimeoutExpired: it was still there after `STOP_SECONDS_MAX`; it has
                been killed.
        """
        process = self._running()
        process.send_signal(signal_number)
        try:
            return process.wait(STOP_SECONDS_MAX)
        finally:
            self.kill()

    def kill(self) -> None:
        """End the broker at once by SIGKILL; nothing happens if it is not running.

        In a fork of the process that started it, it is only forgotten.
        """
        process, self._process = self._process, None
        atexit.unregister(self.kill)
        if process is None or self._is_forked:
            return
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def restart(self) -> None:
        """Stop the broker gently if it runs, and start it on the same port and data."""
        if self.is_running:
            self.stop()
        self.start()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the broker is not running")
        return self._process

    def _read_ready_line(self, process: subprocess.Popen[bytes]) -> None:
        """Read standard output up to the ready line, and take the address from it."""
        __tracebackhide__ = True
        stdout = process.stdout
        assert stdout is not None
        deadline = time.monotonic() + START_SECONDS_MAX
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while True:
                if not selector.select(max(deadline - time.monotonic(), 0)):
                    raise BrokerStartError(self._failure("was not ready in time"))
                line = stdout.readline()
                if not line:
                    code = process.wait()
                    raise BrokerStartError(self._failure(f"ended with exit code {code}"))
                if line.startswith(METRICS_PREFIX):
                    urls = line.removeprefix(METRICS_PREFIX).decode()
                    self.metrics_urls = urls.strip().split(",")
                if line.startswith(CONTROL_PREFIX):
                    self.control_address = line.removeprefix(CONTROL_PREFIX).decode().strip()
                if line.startswith(READY_PREFIX):
                    break
        self.ready_line = line.decode().rstrip("\n")
        address = line.removeprefix(READY_PREFIX).split(b",")[0].decode()
        self._host, _, port = address.rpartition(":")
        self._port = int(port)

    def _failure(self, what: str) -> str:
        tail = self.log[-LOG_TAIL_BYTES:].strip() or "(nothing logged)"
        command = " ".join(map(_without_secret, self.command()))
        return f"the broker {what}: {command}\n{tail}"

    def __repr__(self) -> str:
        state = f"pid {self.pid}" if self.is_running else "not running"
        return f"<broker process at {self.bootstrap}, {state}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_running and not self._is_forked:
            self.stop()
        self.kill()
        self.let_go_of_port()


def _without_secret(argument: str) -> str:
    """An argument as a message may show it."""
    from ...config.broker_config import listener_definition
    from ...config.tables.broker_table import BROKER_DEFINITIONS
    from ...config.values import HIDDEN

    name, separator, _ = argument.partition("=")
    definition = BROKER_DEFINITIONS.get(name) or listener_definition(name)
    is_secret = separator and definition is not None and definition.sensitive
    return f"{name}={HIDDEN}" if is_secret else argument


def _default_log_path(data_dir: Path | None) -> Path:
    if data_dir is not None:
        return data_dir.with_name(f"{data_dir.name}.log")
    with tempfile.NamedTemporaryFile(prefix="odradek-", suffix=".log", delete=False) as file:
        return Path(file.name)
