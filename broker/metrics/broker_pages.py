"""What one broker answers at `/metrics`, `/health` and `/ready`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from ...runtime.offload import run_in_thread
from .health import health, readiness
from .http_request import HEALTH_PATH, JSON, READY_PATH, STARTING, answer, refuse

if TYPE_CHECKING:
    from .exposition import BrokerCollector
    from .source import MetricsContext

PROBES = {HEALTH_PATH: health, READY_PATH: readiness}


class BrokerPages:
    """The pages of one broker, of which one scrape is made at a time.

    Attributes:
        source: the parts of the broker; None while it is being put together.
    """

    def __init__(self) -> None:
        self.source: MetricsContext | None = None
        self._turn = trio.Lock()
        self._collector: BrokerCollector | None = None

    async def answer(self, path: str) -> list[bytes]:
        """The whole answer of HTTP to a request.

        Args:
            path: one of `PATHS`.
        """
        if path in PROBES:
            verdict = PROBES[path](self.source)
            return answer(verdict.body, JSON, verdict.status)
        return refuse(STARTING) if self.source is None else await self._metrics(self.source)

    async def _metrics(self, source: MetricsContext) -> list[bytes]:
        async with self._turn:
            if self._collector is None:
                self._collector = await run_in_thread(lambda: _make_collector(source))
            text = await self._collector.text(trio.lowlevel.checkpoint)
        from .exposition import CONTENT_TYPE

        return answer(text, CONTENT_TYPE)


def _make_collector(source: MetricsContext) -> BrokerCollector:
    """In a thread: prometheus-client takes a tenth of a second to load."""
    from .exposition import BrokerCollector

    return BrokerCollector(source)
