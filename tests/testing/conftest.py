"""Brokers for tests of the kit: one for each module, emptied before each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from odradek.testing import Broker


@pytest.fixture(scope="module")
def one_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker with the module's `BROKER_SETTINGS`."""
    with Broker(getattr(request.module, "BROKER_SETTINGS", {})) as broker:
        yield broker


@pytest.fixture
def broker(request: pytest.FixtureRequest, one_broker: Broker) -> Broker:
    """The module's broker, with nothing in it but the module's `BROKER_TOPICS`."""
    one_broker.reset()
    for topic, partitions in getattr(request.module, "BROKER_TOPICS", {}).items():
        one_broker.create_topic(topic, partitions=partitions)
    return one_broker
