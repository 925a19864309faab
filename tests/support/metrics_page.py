"""A page of metrics as Prometheus itself would read it."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterable
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]


class Family(NamedTuple):
    """One metric's lines: what HELP and TYPE said of it."""

    name: str
    type: str
    help: str


class MetricsPage:
    """What one scrape brought.

    Attributes:
        text: the page itself.
        families: in their order.
        values: by name and labels.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.families: list[Family] = []
        self.values: dict[tuple[str, Labels], float] = {}
        for family in text_string_to_metric_families(text):
            self.families.append(Family(family.name, family.type, family.documentation))
            for sample in family.samples:
                key = (sample.name, frozenset(sample.labels.items()))
                assert key not in self.values, f"{key} stands twice"
                self.values[key] = sample.value

    def __getitem__(self, name: str) -> float:
        """The value of a metric without labels."""
        return self.values[name, frozenset()]

    def of(self, name: str, **labels: object) -> float:
        """The value of a metric with just these labels."""
        return self.values[name, frozenset((key, str(value)) for key, value in labels.items())]

    def all_of(self, name: str) -> dict[Labels, float]:
        """Every value of a metric, by labels."""
        return {labels: value for (other, labels), value in self.values.items() if other == name}

    def series(self) -> Iterable[tuple[str, frozenset[str]]]:
        """Every name with the names of its labels."""
        return {(name, frozenset(key for key, _ in labels)) for name, labels in self.values}


def scrape(url: str) -> MetricsPage:
    """Read a page. Raises OSError."""
    with urllib.request.urlopen(url, timeout=60) as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return MetricsPage(response.read().decode())
