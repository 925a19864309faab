"""Connection states and the choice among nodes (Kafka's ClusterConnectionStates,
leastLoadedNode)."""

from __future__ import annotations

import itertools
from random import Random

import pytest
from support.client_parts import NoChance

from odradek.client.metadata.cluster import Node
from odradek.client.network.node_selection import LeastLoaded, least_loaded_node
from odradek.client.network.node_states import (
    GONE,
    TRANSITIONS,
    ConnectionState,
    Event,
    NodeState,
    NodeStates,
)
from odradek.client.settings import ClientSettings, check_settings

NODES = tuple(Node(n, f"broker-{n}", 9092) for n in range(4))


def make_states(**settings: int) -> NodeStates:
    return NodeStates(ClientSettings(**settings), NoChance())


def ready(states: NodeStates, *node_ids: int, now_ms: int = 0) -> None:
    for node_id in node_ids:
        states.connecting(node_id, now_ms)
        states.connected(node_id)
        states.ready(node_id)


def choose(
    states: NodeStates, in_flight=None, now_ms: int = 0, in_flight_max: int = 5, nodes=NODES
):
    counts = in_flight or {}
    return least_loaded_node(
        nodes, states, lambda node_id: counts.get(node_id, 0), in_flight_max, NoChance(), now_ms
    )


def test_a_ready_node_with_nothing_in_flight_is_chosen():
    states = make_states()
    ready(states, 0, 2)
    assert choose(states, {0: 1}) == LeastLoaded(NODES[2], True)


def test_of_busy_nodes_the_one_with_the_fewest_in_flight_is_chosen():
    states = make_states()
    ready(states, 0, 1, 2, 3)
    assert choose(states, {0: 4, 1: 2, 2: 3, 3: 2}).node == NODES[1]


def test_a_full_node_is_not_chosen_but_counts_as_ready():
    states = make_states()
    ready(states, 0)
    assert choose(states, {0: 5}, nodes=NODES[:1]) == LeastLoaded(None, True)


def test_a_busy_connection_is_preferred_to_one_that_must_be_made():
    states = make_states()
    ready(states, 3)
    states.connecting(1, 0)
    assert choose(states, {3: 4}).node == NODES[3]


def test_a_connection_on_its_way_is_preferred_to_one_that_must_be_made():
    states = make_states()
    states.connecting(2, 0)
    assert choose(states) == LeastLoaded(NODES[2], False)


def test_of_nodes_to_connect_to_the_one_tried_longest_ago_is_chosen():
    states = make_states(reconnect_backoff_ms=1, reconnect_backoff_max_ms=1)
    for node_id, moment in ((0, 30), (1, 10), (2, 20), (3, 40)):
        states.connecting(node_id, moment)
        states.disconnected(node_id, moment)
    assert choose(states, now_ms=100).node == NODES[1]


def test_a_node_never_tried_is_chosen_before_one_that_failed():
    states = make_states(reconnect_backoff_ms=1, reconnect_backoff_max_ms=1)
    states.connecting(0, 10)
    states.disconnected(0, 10)
    assert choose(states, now_ms=100).node == NODES[1]


def test_no_node_is_chosen_while_all_back_off():
    states = make_states()
    for node in NODES:
        states.connecting(node.id, 0)
        states.disconnected(node.id, 0)
    assert choose(states, now_ms=10) == LeastLoaded(None, False)


def test_there_may_be_no_nodes_at_all():
    assert choose(make_states(), nodes=()) == LeastLoaded(None, False)


def test_a_throttled_node_is_not_chosen_until_its_time_is_over():
    states = make_states()
    ready(states, 0)
    states.throttle(0, 500)
    assert choose(states, now_ms=499, nodes=NODES[:1]) == LeastLoaded(None, False)
    assert choose(states, now_ms=500, nodes=NODES[:1]).node == NODES[0]


def test_the_search_begins_anywhere():
    states = make_states()
    ready(states, *range(4))
    random = Random(1)
    chosen = {least_loaded_node(NODES, states, lambda _: 0, 5, random, 0).node for _ in range(100)}
    assert chosen == set(NODES)


def test_a_node_may_be_connected_to_again_after_a_backoff_that_doubles():
    states = make_states(reconnect_backoff_ms=50, reconnect_backoff_max_ms=300)
    now_ms = 0
    waits = []
    for _ in range(5):
        states.connecting(7, now_ms)
        assert not states.can_connect(7, now_ms)
        states.disconnected(7, now_ms)
        waits.append(states.connection_delay_ms(7, now_ms))
        assert not states.can_connect(7, now_ms + waits[-1] - 1)
        now_ms += waits[-1]
        assert states.can_connect(7, now_ms)
    assert waits == [50, 100, 200, 300, 300]


def test_a_connection_that_was_ready_ends_the_backoff_of_failures():
    states = make_states(reconnect_backoff_ms=50)
    for _ in range(3):
        states.connecting(7, 0)
        states.disconnected(7, 0)
    ready(states, 7)
    states.disconnected(7, 0)
    assert states.connection_delay_ms(7, 0) == 50


def test_the_setup_timeout_doubles_while_sockets_cannot_be_opened():
    states = make_states(
        socket_connection_setup_timeout_ms=100, socket_connection_setup_timeout_max_ms=500
    )
    timeouts = []
    for _ in range(4):
        timeouts.append(states.setup_timeout_ms(7))
        states.connecting(7, 0)
        states.disconnected(7, 0)
    assert timeouts == [100, 200, 400, 500]
    states.connecting(7, 0)
    states.connected(7)
    assert states.setup_timeout_ms(7) == 100


def test_refused_credentials_back_off_like_a_failure():
    states = make_states(reconnect_backoff_ms=50)
    states.connecting(7, 0)
    states.connected(7)
    states.authentication_failed(7, 10)
    assert states.state(7) is ConnectionState.AUTHENTICATION_FAILED
    assert states.connection_delay_ms(7, 10) == 50
    assert states.can_connect(7, 60)


def test_a_shorter_throttle_does_not_end_a_longer_one():
    states = make_states()
    states.throttle(7, 500)
    states.throttle(7, 300)
    assert states.throttle_delay_ms(7, 400) == 100


def test_a_node_that_is_forgotten_may_be_connected_to_at_once():
    states = make_states()
    states.connecting(7, 0)
    states.disconnected(7, 0)
    states.remove(7)
    assert states.can_connect(7, 0)
    assert states.connection_delay_ms(7, 0) == 0


@pytest.mark.parametrize("cell", list(itertools.product(ConnectionState, Event)), ids=str)
def test_what_is_not_in_the_table_cannot_happen(cell):
    state, event = cell
    node = NodeState(0, 0)
    node.state = state
    if cell in TRANSITIONS:
        node.on(event)
        assert node.state is TRANSITIONS[cell]
    else:
        with pytest.raises(RuntimeError, match="cannot happen"):
            node.on(event)


def test_a_node_that_is_gone_and_no_other_can_be_connected_to():
    assert {state for state, event in TRANSITIONS if event is Event.CONNECT} == set(GONE)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("request_timeout_ms", 0),
        ("max_in_flight_requests_per_connection", 0),
        ("retry_backoff_ms", -1),
        ("connections_max_idle_ms", -2),
        ("metadata_recovery_strategy", "perhaps"),
    ],
)
def test_a_setting_out_of_its_range_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=name):
        check_settings(ClientSettings(**{name: value}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("request_timeout_ms", 1),
        ("max_in_flight_requests_per_connection", 1),
        ("retry_backoff_ms", 0),
        ("connections_max_idle_ms", -1),
        ("metadata_recovery_strategy", "none"),
    ],
)
def test_a_setting_at_the_end_of_its_range_is_taken(name, value):
    settings = ClientSettings(**{name: value})
    assert check_settings(settings) is settings
