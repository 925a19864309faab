"""Who appends decides how much is checked (Kafka's AppendOrigin)."""

from __future__ import annotations

from enum import Enum


class AppendOrigin(Enum):
    """Where a batch comes from."""

    CLIENT = "client"
    """A producer: everything is checked."""
    COORDINATOR = "coordinator"
    """A group or transaction coordinator of this broker: offsets and sequences are its own."""
    ADMINISTRATOR = "administrator"
    """Who ends a transaction without its coordinator: what the coordinator writes later must still
    be taken, so a marker is no newer than what the partition knows. Kafka has no such origin."""
    REPLICATION = "replication"
    """The leader, through a fetch: it has been checked there."""
