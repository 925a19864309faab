"""What must hold of each broker by itself: its metadata, its requests, and what it keeps."""

from __future__ import annotations

from ....metadata.metadata_cache import MetadataSnapshot
from ..node import Node
from .invariants import InvariantBroken
from .log_checker import Key

ANSWERED_WITHIN_MS = 40_000
"""No request waits longer at a healthy broker: `request.timeout.ms` is 30 s."""
TASKS_MAX = 200
TIMERS_MAX = 2_000
"""A healthy broker that nobody asks for anything has no more of them."""


class BrokerChecker:
    """Watches over the brokers of one run."""

    def __init__(self) -> None:
        self._snapshots: dict[int, tuple[int, MetadataSnapshot]] = {}
        self._epochs: dict[tuple[int, int], dict[Key, int]] = {}

    def check_node(self, node: Node) -> None:
        """Its metadata go forward: within a life no leader epoch goes back."""
        broker = node.broker
        if broker is None:
            return
        snapshot = broker.metadata_cache.snapshot
        life, seen = self._snapshots.get(node.broker_id, (0, None))
        if seen is snapshot:
            return
        self._snapshots[node.broker_id] = node.life, snapshot
        if life != node.life:
            self._epochs.pop((node.broker_id, life), None)
        epochs = self._epochs.setdefault((node.broker_id, node.life), {})
        for of_topic in snapshot.partition_states.values():
            for state in of_topic.values():
                key = (state.topic_id, state.partition)
                if state.leader_epoch < epochs.get(key, -1):
                    raise InvariantBroken(
                        f"{node} knew epoch {epochs[key]} of {state.topic_partition}, and goes "
                        f"back to {state.leader_epoch}"
                    )
                epochs[key] = state.leader_epoch

    def check_rest(self, node: Node) -> None:
        """Nothing is left unanswered, and nothing has piled up."""
        broker = node.broker
        assert broker is not None
        now_ms = node.clock.monotonic_ms()
        for connection in node.connections:
            for request in connection.unanswered:
                received_ms = getattr(request, "received_ms", now_ms)
                if now_ms - received_ms > ANSWERED_WITHIN_MS:
                    raise InvariantBroken(f"{node} does not answer {request!r}")
        if len(node.process.tasks) > TASKS_MAX:
            raise InvariantBroken(f"{node} has {len(node.process.tasks)} tasks")
        if len(broker.timers) > TIMERS_MAX:
            raise InvariantBroken(f"{node} has {len(broker.timers)} timers")
