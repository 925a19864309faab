"""Clients of a scripted cluster, which a module's own `cluster` makes."""

from __future__ import annotations

import pytest
from support.client_parts import NoChance

from odradek.client import ClientSettings, KafkaClient


@pytest.fixture
def make_client(cluster):
    def make(**settings) -> KafkaClient:
        return KafkaClient(
            cluster.bootstrap,
            ClientSettings(**settings),
            connect=cluster.connect,
            random=NoChance(),
        )

    return make
