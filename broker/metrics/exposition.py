"""A broker's metrics as text, in Prometheus's format, made with prometheus-client.

All of it is done in small steps with a pause after each, so that a broker with thousands of
partitions goes on answering while it is scraped. Only this module imports prometheus-client,
which takes longer to load than a broker takes to start: import it late, and in a thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from prometheus_client import Metric as Family
from prometheus_client import ProcessCollector, generate_latest
from prometheus_client.registry import Collector

from ...runtime.steps import in_batches
from .metric import Metric, MetricType, Summary
from .metric_table import METRICS
from .pushed import Labels, pushed_samples
from .readers import READERS
from .source import MetricsContext

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SAMPLES_PER_STEP = 128
"""Some hundred microseconds to read, a millisecond to write."""

SampleT = TypeVar("SampleT")

PUSHED = "Pushed by clients (KIP-714)."

Pause = Callable[[], Awaitable[None]]
"""Lets others run."""

Values = list[tuple[tuple[str, ...], "float | Summary"]]
"""What was read for one metric: its labels' values, and its value."""


class BrokerCollector:
    """Makes the text of one broker's metrics.

    Args:
        source: the parts of a running broker.
    """

    def __init__(self, source: MetricsContext) -> None:
        self._source = source
        # Not in the library's global registry: a process may hold several brokers.
        self._process = ProcessCollector(registry=None)

    async def text(self, pause: Pause) -> bytes:
        """All metrics as they are now.

        Args:
            pause: awaited after each step.
        """
        values = await self._read(pause)
        parts = [_write(self._process)]
        for name, metric in METRICS.items():
            await _add(parts, partial(_family, metric), values[name], pause)
        for name, samples in (await self._read_pushed(pause)).items():
            await _add(parts, partial(_pushed_family, name), list(samples.items()), pause)
        return b"".join(parts)

    async def _read_pushed(self, pause: Pause) -> dict[str, dict[Labels, float]]:
        """What clients have pushed, by whatever they call it."""
        families: dict[str, dict[Labels, float]] = {}
        for index, (name, labels, value) in enumerate(pushed_samples(self._source)):
            families.setdefault(name, {})[labels] = value
            if index % SAMPLES_PER_STEP == 0:
                await pause()
        return families

    async def _read(self, pause: Pause) -> dict[str, Values]:
        values: dict[str, Values] = {name: [] for name in METRICS}
        steps = 0
        for reader in READERS:
            for name, labels, value in reader(self._source):
                values[name].append((labels, value))
                steps += 1
                if steps % SAMPLES_PER_STEP == 0:
                    await pause()
        return values


async def _add(
    parts: list[bytes],
    family_of: Callable[[Sequence[SampleT]], Family],
    samples: Sequence[SampleT],
    pause: Pause,
) -> None:
    """Write the samples of one metric in pieces: HELP and TYPE stand once, above all lines."""
    for index, some in enumerate(in_batches(samples, SAMPLES_PER_STEP)):
        await pause()
        lines = _write(_Only(family_of(some)))
        parts.append(lines.split(b"\n", 2)[2] if index else lines)


def _pushed_family(name: str, samples: Sequence[tuple[Labels, float]]) -> Family:
    kind = "counter" if name.endswith("_total") else "gauge"
    family = Family(name.removesuffix("_total"), PUSHED, kind)
    for pairs, value in samples:
        family.add_sample(name, dict(pairs), value)
    return family


class _Only(Collector):
    """Collects one family."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def collect(self) -> Iterator[Family]:
        yield self._family


def _write(collector: Collector) -> bytes:
    text: bytes = generate_latest(collector)
    return text


def _family(metric: Metric, values: Sequence[tuple[tuple[str, ...], float | Summary]]) -> Family:
    # The library adds a counter's `_total` to the name of its family.
    is_counter = metric.type is MetricType.COUNTER
    name = metric.name.removesuffix("_total") if is_counter else metric.name
    family = Family(name, help_text(metric), metric.type.value)
    for label_values, value in values:
        # A metric's total over all topics has no labels.
        labels = dict(zip(metric.labels, label_values, strict=bool(label_values)))
        if isinstance(value, Summary):
            for quantile, at in value.quantiles:
                family.add_sample(name, {**labels, "quantile": quantile}, at)
            family.add_sample(f"{name}_count", labels, value.observations)
            family.add_sample(f"{name}_sum", labels, value.sum)
        else:
            family.add_sample(metric.name, labels, value)
    return family


def help_text(metric: Metric) -> str:
    """What a HELP line says: the sentence, and Kafka's own name."""
    return f"{metric.help} ({metric.mbean})" if metric.mbean else metric.help
