"""Which node to ask what any node can answer: the one with the least to do.

Article 002, section 3: "the node with the fewest requests". Kafka counts those in flight, and
prefers a connection that is there to one that is on its way to one that would have to be made
(`NetworkClient.leastLoadedNode`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from ..metadata.cluster import Node
from .node_states import NodeStates


class LeastLoaded(NamedTuple):
    """What was found.

    Attributes:
        node: None if no node can be used now.
        is_any_ready: whether any of those looked at has a usable connection, full or not.
    """

    node: Node | None
    is_any_ready: bool


def least_loaded_node(
    nodes: Sequence[Node],
    states: NodeStates,
    in_flight: Callable[[int], int],
    in_flight_max: int,
    random: Random,
    now_ms: int,
) -> LeastLoaded:
    """The ready node with the fewest requests in flight; else one that is being connected to;
    else, of those that may be connected to, the one tried longest ago.

    The search begins at a random node, so that many clients do not all ask the same one.

    Args:
        nodes: to choose from.
        states: of the connections to them.
        in_flight: how many requests a node has not answered yet.
        in_flight_max: a node with as many can take no more.
        random: where the search begins.
        now_ms: the moment, for backoffs and throttling.
    """
    fewest = in_flight_max
    ready: Node | None = None
    preparing: Node | None = None
    connectable: Node | None = None
    is_any_ready = False
    offset = random.randrange(len(nodes)) if nodes else 0
    for node in [*nodes[offset:], *nodes[:offset]]:
        if states.is_ready(node.id, now_ms):
            is_any_ready = True
            count = in_flight(node.id)
            if count == 0:
                return LeastLoaded(node, True)
            if count < fewest:
                fewest, ready = count, node
        elif states.is_preparing(node.id):
            preparing = node
        elif states.can_connect(node.id, now_ms) and (
            connectable is None
            or states.last_attempt_ms(node.id) < states.last_attempt_ms(connectable.id)
        ):
            connectable = node
    return LeastLoaded(ready or preparing or connectable, is_any_ready)
