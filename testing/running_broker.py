"""`Broker`: a real broker for tests, there in a fraction of a second and gone with them.

    with odradek.testing.Broker() as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)

It is a process of its own, so any client of any language can use it, and killing it is a real
kill. Its data lie in a temporary folder that outlives restarts and goes when it is closed, or
when the process that made it is gone, however that one ended.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from .broker_process import BrokerProcess

TEST_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}
"""What a test wants otherwise than Kafka's defaults: nobody waits for members to come, and
internal topics have few partitions. A test's own settings stand before these."""


class Broker(BrokerProcess):
    """A broker for tests; it is ready when the constructor returns.

    Args:
        settings: broker settings by Kafka's names.
        listen: HOST:PORT of its listener; port 0 takes a free one.
        exit_with: the process with which it ends at the latest; None: this one.
        leftovers: further folders to be removed if that process does not end it itself.

    Attributes:
        folder: holds its data and its log, until `close`.

    Raises:
        BrokerStartError: it did not become ready; the text holds its log.
    """

    own_session = True

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        listen: str = "127.0.0.1:0",
        exit_with: int | None = None,
        leftovers: Sequence[Path] = (),
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="odradek-"))
        self._exit_with = os.getpid() if exit_with is None else exit_with
        self._leftovers = (self.folder, *leftovers)
        try:
            super().__init__(
                self.folder / "data",
                listen=listen,
                settings={**TEST_SETTINGS, **(settings or {})},
                log_path=self.folder / "log",
            )
        except BaseException:
            self.close()
            raise

    @property
    def bootstrap_servers(self) -> str:
        """The address to give to clients."""
        return self.bootstrap

    def command(self) -> list[str]:
        """The command line of the next start."""
        command = [sys.executable, "-m", "odradek.testing.broker"]
        command += ["--listen", self.bootstrap, "--data-dir", str(self.data_dir)]
        command += ["--exit-with", str(self._exit_with)]
        for folder in self._leftovers:
            command += ["--leftover", str(folder)]
        for key, value in self.settings.items():
            command += ["-o", f"{key}={value}"]
        return command + self.arguments

    def release(self) -> None:
        """Leave it to the process with which it ends: this one has started it, and no more."""
        process, self._process = self._process, None
        atexit.unregister(self.kill)
        if process is not None:
            assert process.stdout is not None
            process.stdout.close()
            process.returncode = 0  # nobody waits for it here

    def close(self) -> None:
        """End it, at once, and remove all it kept; it may be called again."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
