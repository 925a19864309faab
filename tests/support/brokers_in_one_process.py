"""Several brokers in one process, each of which can be killed and started by itself.

As a script it runs them, and obeys lines of its input. A kill there is what the end of a
process is to everybody else: in one step, between two turns of the loop, the broker's sockets
are reset, its session and its logs are let go of as they are, and its tasks are cancelled.
Nothing is flushed, no checkpoint written, nobody told.
"""

from __future__ import annotations

import json
import logging
import selectors
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import trio

from odradek.broker.broker import Broker
from odradek.broker.start import make_broker
from odradek.common.log_lines import log_to_stderr
from odradek.config.broker_config import BrokerConfig
from odradek.metadata_store.embedded.embedded_store import EmbeddedStore
from odradek.testing.process.broker_process import BrokerProcess

ANSWER_SECONDS_MAX = 120.0
RESET_AT_CLOSE = struct.pack("ii", 1, 0)


class BrokersProcess:
    """The process, as a test sees it; it lives as long as one of its brokers is wanted.

    Args:
        log_path: where its standard error goes.
    """

    def __init__(self, log_path: Path) -> None:
        self.log_path = log_path
        self._process: subprocess.Popen[bytes] | None = None
        self._one_order = threading.Lock()

    @property
    def log(self) -> str:
        """What all brokers have logged so far."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def start(self, settings: Mapping[str, str]) -> str:
        """Start a broker; returns its first address."""
        with self._one_order:
            return self._order({"do": "start", "settings": dict(settings)})

    def kill(self, broker_id: int) -> None:
        """Kill a broker."""
        with self._one_order:
            self._order({"do": "kill", "broker": broker_id})

    def end(self) -> None:
        """SIGKILL to the whole process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()

    def _order(self, order: dict[str, Any]) -> str:
        if self._process is None:
            with self.log_path.open("ab") as log:
                self._process = subprocess.Popen(
                    [sys.executable, __file__],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    bufsize=0,
                )
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(order).encode() + b"\n")
        deadline = time.monotonic() + ANSWER_SECONDS_MAX
        answer = b""
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while not answer.endswith(b"\n"):
                ready = selector.select(max(deadline - time.monotonic(), 0))
                part = stdout.read(65536) if ready else b""
                assert part, f"no answer to {order}:\n{self.log[-4000:]}"
                answer += part
        found = json.loads(answer)
        assert "trouble" not in found, f"{found['trouble']}:\n{self.log[-4000:]}"
        return str(found["done"])


class BrokerInside(BrokerProcess):
    """One broker of a `BrokersProcess`.

    Args:
        process: where it runs.
        broker_id: its number.
        alike: has its folder and settings, and is never started itself.
        shared: the folder of the cluster's metadata.
    """

    def __init__(
        self, process: BrokersProcess, broker_id: int, alike: BrokerProcess, shared: Path
    ) -> None:
        settings = {
            **alike.settings,
            "broker.id": str(broker_id),
            "log.dirs": str(alike.data_dir),
            "metadata.log.dir": str(shared),
        }
        super().__init__(alike.data_dir, settings=settings, log_path=process.log_path, start=False)
        self._process_of_all = process
        self._broker_id = broker_id
        self._lives = False

    @property
    def is_running(self) -> bool:
        """Whether it was started and not killed."""
        return self._lives

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        _, _, port = self._process_of_all.start(self.settings).rpartition(":")
        self._port = int(port)
        self._lives = True

    def kill(self) -> None:
        """Kill it, if it runs."""
        if self._lives:
            self._lives = False
            self._process_of_all.kill(self._broker_id)


# -- in the process -----------------------------------------------------------------------


class _Running:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.scope = trio.CancelScope()
        self.address = ""
        self.ready = trio.Event()
        self.ended = trio.Event()

    async def run(self) -> None:
        def on_ready(advertised: Any) -> None:
            self.address = advertised[0].address
            self.ready.set()

        try:
            with self.scope:
                await self.broker.run(on_ready)
        except BaseException:
            if not self.scope.cancel_called:
                raise
            # What it was at could not know that everything was taken from it.
            logging.getLogger(__name__).info("a killed broker ended", exc_info=True)
        finally:
            self.ended.set()

    def kill(self) -> None:
        """Take everything from it in one step."""
        broker = self.broker
        # A dead process does neither; `patch.object` refuses a name that a rename left behind.
        for last_act in ("_shut_down_in_order", "_stop"):
            mock.patch.object(broker, last_act, _nothing).start()
        assert isinstance(broker.metadata_store, EmbeddedStore)
        broker.metadata_store.abandon()
        broker.log_manager.abandon()
        epoll = broker.server._epoll
        assert epoll is not None
        for link in list(epoll._links.values()):
            link.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
        broker.server.close()
        self.scope.cancel()


async def _nothing() -> None:
    pass


class _Host:
    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._running: dict[int, _Running] = {}

    async def obey(self, order: dict[str, Any]) -> str:
        if order["do"] == "start":
            broker = await make_broker(BrokerConfig.from_sources({}, order["settings"]))
            running = self._running[broker.broker_id] = _Running(broker)
            self._nursery.start_soon(running.run)
            await running.ready.wait()
            return running.address
        killed = self._running.pop(order["broker"])
        killed.kill()
        await killed.ended.wait()
        return "killed"


async def _main() -> None:
    async with trio.open_nursery() as nursery:
        host = _Host(nursery)
        async for line in trio.wrap_file(sys.stdin):
            try:
                answer = {"done": await host.obey(json.loads(line))}
            except Exception as trouble:
                logging.getLogger(__name__).exception("an order was not carried out")
                answer = {"trouble": repr(trouble)}
            print(json.dumps(answer), flush=True)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    log_to_stderr(logging.INFO)
    trio.run(_main)
