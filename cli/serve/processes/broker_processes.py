"""Brokers as processes: started together, begun again when one ends, stopped together."""

from __future__ import annotations

import logging
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Final

import trio

from ....runtime.supervisor import Supervisor
from .broker_child import BrokerChild
from .restarts import Restarts

if TYPE_CHECKING:
    from ....broker.metrics.endpoint import MetricsListener

logger = logging.getLogger(__name__)

STOP_SECONDS_MAX: Final = 100.0
"""A broker that has not stopped by then is killed, before systemd kills all (deploy/)."""


class ProcessesFailedError(Exception):
    """The brokers were stopped, though nobody wanted that; the text says why."""


class BrokerProcesses:
    """Looks after the processes of a cluster's brokers.

    A broker that ends, however, is started again; one that ends too often, or before it was ever
    ready, stops all: half a cluster that nobody notices is worse. They are stopped all at the same
    time: each hands its partitions to those that stay, and the last has none to hand them to.

    Args:
        children: the brokers.
        announce: called with their addresses once all are ready.
        metrics: where their metrics are served, if they are.
    """

    def __init__(
        self,
        children: Sequence[BrokerChild],
        announce: Callable[[str], None],
        metrics: MetricsListener | None = None,
    ) -> None:
        self._children = children
        self._announce = announce
        self._metrics = metrics
        self._is_announced = False
        self._stopping = trio.Event()
        self._failure: str | None = None

    async def run(self, stop_requested: Callable[[], bool]) -> None:
        """Run the brokers until SIGINT or SIGTERM.

        Args:
            stop_requested: whether a signal came before this listens to signals.

        Raises:
            ProcessesFailedError: they ended otherwise.
        """
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            if stop_requested():
                return
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._serve_metrics)
                nursery.start_soon(self._stop_on_signals, signals)
                nursery.start_soon(self._kill_those_that_stay)
                async with trio.open_nursery() as brokers:
                    for child in self._children:
                        brokers.start_soon(self._keep, child)
                nursery.cancel_scope.cancel()
        if self._failure is not None:
            raise ProcessesFailedError(self._failure)

    async def _keep(self, child: BrokerChild) -> None:
        """Start a broker again whenever it ends, until all are to stop."""
        restarts = Restarts()
        # What starts later finds the others there, or is wanted without them.
        companions = [each.broker_id for each in self._children]
        while not self._stopping.is_set():
            how = await child.live(companions, lambda: self._on_ready(child))
            if self._stopping.is_set():
                if how:
                    self._fail(f"broker {child.broker_id} {how} while it was being stopped.")
                return
            how = how or "stopped by itself"
            if not child.was_ready:
                self._fail(f"broker {child.broker_id} {how} before it was ready: all are stopped.")
                return
            delay = restarts.next_delay(trio.current_time())
            if delay is None:
                self._fail(
                    f"broker {child.broker_id} {how}, and was started again too often already: all "
                    "are stopped. What it has said in the log is why."
                )
                return
            logger.error(
                "broker %d %s; it is started again in %.2f s",
                child.broker_id,
                how,
                delay,
                extra={"broker_id": child.broker_id},
            )
            companions = []
            with trio.move_on_after(delay):
                await self._stopping.wait()

    def _on_ready(self, child: BrokerChild) -> None:
        logger.log(
            logging.INFO if child.starts == 1 else logging.WARNING,
            "broker %d is ready, in process %d",
            child.broker_id,
            child.pid,
            extra={"broker_id": child.broker_id},
        )
        addresses = [each.address for each in self._children]
        if all(addresses) and not self._is_announced:
            self._is_announced = True
            self._announce(",".join(addresses))

    def _fail(self, sentence: str) -> None:
        """Stop all; of several reasons the first one counts."""
        self._failure = self._failure or sentence
        self._stop()

    def _stop(self) -> None:
        self._stopping.set()
        for child in self._children:
            child.stop()

    async def _stop_on_signals(self, signals: AsyncIterator[int]) -> None:
        async for number in signals:
            logger.info("stopping on %s", signal.Signals(number).name)
            self._stop()

    async def _kill_those_that_stay(self) -> None:
        await self._stopping.wait()
        await trio.sleep(STOP_SECONDS_MAX)
        for child in self._children:
            child.kill()

    async def _serve_metrics(self) -> None:
        if self._metrics is None:
            return
        from ....broker.metrics.endpoint import MetricsEndpoint
        from .merged_pages import MergedPages

        endpoint = MetricsEndpoint(MergedPages(self._children))
        await Supervisor().run(endpoint.serve, self._metrics)
