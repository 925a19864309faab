"""Whom to ask for metadata, and what makes it suspect (article 002, sections 2 to 4)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.client_parts import (
    BACKOFF_MS,
    MAX_AGE_MS,
    Updater,
    answer,
    leaders,
    partition,
    topic,
)

from odradek.client.error_kinds import RETRIABLE_ERRORS, STALE_METADATA_ERRORS
from odradek.client.errors import AuthenticationError, RequestTimeoutError
from odradek.client.metadata.cluster import Node
from odradek.client.metadata.metadata_updater import (
    Ask,
    Connect,
    MetadataUpdater,
    Rebootstrap,
    Wait,
)
from odradek.common.errors import ErrorCode

BOOT_1 = Node(-1, "boot-1", 9092)
BROKER_1 = Node(1, "broker-1", 9092)
DATA = Path(__file__).parent / "data"


def settled(*topics: str, **settings: int | str) -> Updater:
    """An updater with fresh metadata of nodes 1 and 2, both connected, at the time 0."""
    parts = Updater(*topics, **settings)
    answers = [topic(name, partition(0, leader=1)) for name in topics]
    parts.metadata.update(answer(*answers), 0)
    parts.make_ready(1, 2)
    return parts


Trigger = Callable[[MetadataUpdater, int], object]

TRIGGERS: dict[str, Trigger] = {
    "connection_failed": lambda updater, now: updater.connection_failed(now),
    "connection_lost": lambda updater, now: updater.connection_lost(now),
    "request_timed_out": lambda updater, now: updater.request_timed_out(
        now, RequestTimeoutError("planted")
    ),
    "leader_unknown": lambda updater, now: updater.leader_unknown("t", now),
    "partition_error": lambda updater, now: updater.partition_error(
        ErrorCode.NOT_LEADER_OR_FOLLOWER
    ),
}


@pytest.mark.parametrize("name", TRIGGERS)
def test_each_of_the_five_triggers_forces_a_refresh_long_before_max_age(name):
    parts = settled("t")
    assert parts.updater.next_step(10_000) == Wait(MAX_AGE_MS - 10_000)
    TRIGGERS[name](parts.updater, 10_000)
    step = parts.updater.next_step(10_000)
    assert step == Ask(BROKER_1, parts.updater.in_progress)
    assert step.query.topics == ["t"]
    assert not step.query.is_partial


@pytest.mark.parametrize("name", TRIGGERS)
def test_no_trigger_overrules_the_backoff(name):
    parts = settled("t")
    TRIGGERS[name](parts.updater, 10)
    assert parts.updater.next_step(10) == Wait(BACKOFF_MS - 10)


def test_exactly_the_errors_of_stale_metadata_force_a_refresh():
    for code in ErrorCode:
        parts = settled("t")
        assert parts.updater.partition_error(code) == (code in STALE_METADATA_ERRORS), code
        assert parts.metadata.need_full_update == (code in STALE_METADATA_ERRORS), code


def test_the_kinds_of_errors_are_those_of_kafka():
    kinds: dict[str, set[int]] = {"stale": set(), "retriable": set()}
    for line in (DATA / "kafka-4.3.1-error-kinds.tsv").read_text().splitlines():
        if not line.startswith("#"):
            code, _, kind = line.split("\t")
            kinds[kind].add(int(code))
    assert kinds["stale"] == STALE_METADATA_ERRORS
    assert kinds["retriable"] == RETRIABLE_ERRORS - STALE_METADATA_ERRORS


def test_a_topic_without_a_leader_is_requested_though_it_had_expired():
    parts = settled("t")
    parts.updater.leader_unknown("forgotten", 10_000)
    assert parts.metadata.next_query(10_000).topics == ["t", "forgotten"]


# --- Whom to ask ----------------------------------------------------------------------------


def test_the_first_step_is_to_connect_to_a_bootstrap_node():
    parts = Updater()
    assert parts.updater.next_step(0) == Connect(BOOT_1)


def test_while_one_node_is_being_connected_to_no_other_is():
    parts = Updater()
    parts.states.connecting(-1, 0)
    assert parts.updater.next_step(0) == Wait(parts.settings.reconnect_backoff_ms)
    parts.states.connected(-1)
    assert parts.updater.next_step(0) == Wait(
        parts.settings.metadata_recovery_rebootstrap_trigger_ms + 1
    )


def test_a_node_that_is_ready_is_queried_and_only_once_at_a_time():
    parts = Updater()
    parts.make_ready(-1)
    assert isinstance(parts.updater.next_step(0), Ask)
    assert isinstance(parts.updater.next_step(0), Wait)
    parts.updater.failed(0)
    assert isinstance(parts.updater.next_step(BACKOFF_MS), Ask)


def test_the_node_with_the_fewest_requests_in_flight_is_queried():
    parts = settled()
    parts.in_flight = {1: 3, 2: 2}
    parts.metadata.request_update()
    step = parts.updater.next_step(10_000)
    assert isinstance(step, Ask)
    assert step.node.id == 2


def test_a_connection_that_is_full_is_waited_for():
    parts = settled(max_in_flight_requests_per_connection=2)
    parts.states.disconnected(2, 10_000)
    parts.in_flight = {1: 2}
    parts.metadata.request_update()
    assert parts.updater.next_step(10_000) == Wait(parts.settings.reconnect_backoff_ms)
    parts.in_flight = {1: 1}
    assert isinstance(parts.updater.next_step(10_000), Ask)


# --- What came of it ------------------------------------------------------------------------


def test_an_answer_updates_the_metadata():
    parts = Updater("t")
    parts.make_ready(-1)
    parts.updater.next_step(0)
    parts.updater.answered(answer(topic("t", partition(0, leader=2))), 0)
    assert leaders(parts.metadata, "t") == {0: 2}
    assert parts.updater.next_step(0) == Wait(MAX_AGE_MS)


def test_an_answer_without_brokers_counts_as_failed():
    parts = settled("t")
    version = parts.metadata.request_update()
    parts.updater.next_step(10_000)
    parts.updater.answered(answer(nodes=()), 10_000)
    assert parts.metadata.update_version == version
    assert parts.metadata.last_successful_refresh_ms == 0
    assert parts.metadata.last_refresh_ms == 10_000
    assert leaders(parts.metadata, "t") == {0: 1}
    assert parts.updater.next_step(10_000) == Wait(BACKOFF_MS)


def test_a_connection_lost_while_an_update_was_due_counts_as_a_failed_update():
    parts = Updater()
    parts.states.connecting(-1, 0)
    for attempt in range(3):
        parts.updater.connection_failed(attempt * 10_000)
        assert parts.metadata.time_to_next_update(attempt * 10_000) == BACKOFF_MS * 2**attempt


def test_refused_credentials_are_reported_to_those_who_wait():
    parts = Updater()
    parts.updater.connection_failed(0, AuthenticationError("planted"))
    with pytest.raises(AuthenticationError, match="planted"):
        parts.metadata.raise_fatal_error()


# --- Beginning again ------------------------------------------------------------------------


def lose_everyone(parts: Updater, now_ms: int) -> None:
    for node_id in (1, 2):
        parts.states.disconnected(node_id, now_ms)
        parts.updater.connection_lost(now_ms)


def test_when_no_known_node_can_be_used_the_bootstrap_addresses_are_tried_again():
    parts = settled("t", reconnect_backoff_ms=500)
    lose_everyone(parts, 10_000)
    assert parts.updater.next_step(10_000 + BACKOFF_MS) == Connect(BOOT_1)
    assert parts.metadata.cluster.is_bootstrap
    assert parts.metadata.need_full_update


def test_known_nodes_are_tried_again_while_any_of_them_may_be():
    parts = settled("t")
    lose_everyone(parts, 10_000)
    assert parts.updater.next_step(10_000 + BACKOFF_MS) == Connect(BROKER_1)
    assert not parts.metadata.cluster.is_bootstrap


def test_without_the_recovery_strategy_known_nodes_are_waited_for():
    parts = settled("t", reconnect_backoff_ms=500, metadata_recovery_strategy="none")
    lose_everyone(parts, 10_000)
    assert parts.updater.next_step(10_000 + BACKOFF_MS) == Wait(500)
    assert not parts.metadata.cluster.is_bootstrap


def test_after_the_trigger_time_without_metadata_everything_begins_again():
    parts = settled("t", metadata_recovery_rebootstrap_trigger_ms=5_000)
    parts.metadata.request_update()
    assert isinstance(parts.updater.next_step(10_000), Ask)
    assert parts.updater.next_step(10_000) == Wait(5_001)
    nodes = tuple(parts.metadata.cluster.nodes.values())
    assert parts.updater.next_step(15_001) == Rebootstrap(nodes)
    assert parts.metadata.cluster.is_bootstrap


def test_an_answer_in_time_keeps_the_trigger_from_firing():
    parts = settled("t", metadata_recovery_rebootstrap_trigger_ms=5_000)
    parts.metadata.request_update()
    parts.updater.next_step(10_000)
    parts.updater.answered(answer(), 12_000)
    assert parts.updater.next_step(15_001) == Wait(12_000 + MAX_AGE_MS - 15_001)


def test_a_broker_may_ask_a_client_to_begin_again():
    parts = settled("t")
    parts.metadata.request_update()
    parts.updater.next_step(10_000)
    nodes = tuple(parts.metadata.cluster.nodes.values())
    parts.updater.answered(answer(error=ErrorCode.REBOOTSTRAP_REQUIRED), 10_000)
    assert parts.updater.next_step(10_000) == Rebootstrap(nodes)


def test_a_broker_may_not_ask_that_of_a_client_without_the_recovery_strategy():
    parts = settled("t", metadata_recovery_strategy="none")
    parts.metadata.request_update()
    parts.updater.next_step(10_000)
    parts.updater.answered(answer(error=ErrorCode.REBOOTSTRAP_REQUIRED), 10_000)
    assert parts.updater.next_step(10_000) == Wait(MAX_AGE_MS)
