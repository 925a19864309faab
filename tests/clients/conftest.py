"""What tests of groups send their requests over, and a topic for those of transactions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kafka import KafkaAdminClient
from support.group_peer import GroupPeer


@pytest.fixture
def group(topic: str) -> str:
    """The id of a group that does not exist yet."""
    return f"group-{topic}"


@pytest.fixture
def peer(broker: Any, group: str) -> Iterator[GroupPeer]:
    """A connection to the group's coordinator."""
    with GroupPeer(broker.port) as connection:
        connection.wait_for_coordinator(group)
        yield connection


@pytest.fixture
def other(broker: Any) -> Iterator[GroupPeer]:
    """Another connection, so that two requests may wait."""
    with GroupPeer(broker.port) as connection:
        yield connection


@pytest.fixture
def made(broker: Any, topic: str) -> str:
    """A topic of two partitions."""
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        settings = {"num_partitions": 2, "replication_factor": 1}
        admin.create_topics({topic: settings}, wait_for_metadata=True)
    return topic
