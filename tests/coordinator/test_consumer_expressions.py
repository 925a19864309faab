"""Subscriptions by regular expression: checked, resolved for all who share one, and kept fresh."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from support.consumer_bench import GROUP, ORDERS, PAYMENTS, ConsumerBench, partitions
from support.work import times_as_long

from odradek.common.errors import ErrorCode, KafkaError
from odradek.coordinator.group.consumer.heartbeat_request import HeartbeatAnswer
from odradek.coordinator.group.consumer.regular_expressions import (
    BATCH_INTERVAL_MS,
    MATCHES_PER_TURN,
    compile_expression,
)

REFRESH_MS = 600_000


class ExpressionBench(ConsumerBench):
    """Members that subscribe by regular expressions."""

    def join_by(self, member_id: str, expression: str, **fields: Any) -> HeartbeatAnswer:
        answer = self.join(member_id, None, subscribed_topic_regex=expression, **fields)
        self.advance(0)
        return answer

    def topics_of(self, expression: str) -> set[str]:
        return set(self.group().expressions[expression].topics)

    def later(self) -> None:
        """Expressions may be resolved once more; nobody's session ends meanwhile."""
        self.advance(BATCH_INTERVAL_MS + 1)

    def go_on(self, member_id: str, **fields: Any) -> HeartbeatAnswer:
        """The heartbeat of a member that does as it was told."""
        member = self.group().members[member_id]
        owned = partitions(member.assigned_partitions)
        answer = self.beat(member_id, member.member_epoch, owned=owned, **fields)
        self.advance(0)
        return answer


@pytest.fixture
def bench() -> ExpressionBench:
    return ExpressionBench()


def test_a_member_gets_the_topics_that_its_expression_matches_with_its_next_heartbeat(
    bench: ExpressionBench,
) -> None:
    first = bench.join_by("m1", "o.*|payments")
    assert (first.error, first.assignment) == (ErrorCode.NONE, {})
    assert bench.topics_of("o.*|payments") == {"orders", "payments"}
    second = bench.go_on("m1")
    assert second.assignment is not None
    assert partitions(second.assignment) == {ORDERS: {0, 1, 2, 3}, PAYMENTS: {0, 1}}
    assert second.member_epoch == first.member_epoch + 1


def test_an_expression_matches_whole_names_only(bench: ExpressionBench) -> None:
    bench.join_by("m1", "order")
    assert bench.topics_of("order") == set()


@pytest.mark.parametrize("expression", ["(", "a(?=b)", "*", r"(a)\1", "[z-a]"])
def test_what_is_no_expression_of_re2s_is_refused(bench: ExpressionBench, expression: str) -> None:
    answer = bench.join_by("m1", expression)
    assert answer.error is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert answer.error_message is not None
    assert f"`{expression}`" in answer.error_message
    assert bench.coordinator.consumer_groups == []


@pytest.mark.parametrize(("letters", "is_taken"), [(32_767, True), (32_768, False)])
def test_an_expression_is_no_longer_than_a_record_can_hold(
    bench: ExpressionBench, letters: int, is_taken: bool
) -> None:
    expression = "a" * letters
    expected = ErrorCode.NONE if is_taken else ErrorCode.INVALID_REQUEST
    assert bench.join_by("m1", expression).error is expected
    assert bool(bench.coordinator.consumer_groups) is is_taken


def test_an_expression_that_would_take_too_much_memory_is_refused() -> None:
    with pytest.raises(KafkaError) as refusal:
        compile_expression("((a{100}){100}){100}")
    assert refusal.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_an_expression_that_blows_up_elsewhere_takes_no_time_here() -> None:
    assert not compile_expression("(a+)+b")("a" * 240)


def test_an_expression_of_many_groups_takes_as_long_as_one_without() -> None:
    name = "a" * 249
    matches, without = compile_expression("(a)?" * 2000), compile_expression("(?:a)?" * 2000)
    assert matches(name)
    times = times_as_long(lambda: matches(name), lambda: without(name))
    assert times < 20, "keeping track of the groups takes a thousand times as long"


def test_a_member_that_is_refused_its_new_expression_keeps_the_old_one(
    bench: ExpressionBench,
) -> None:
    bench.join_by("m1", "orders")
    assert bench.go_on("m1", subscribed_topic_regex="(").error is (
        ErrorCode.INVALID_REGULAR_EXPRESSION
    )
    assert bench.group().members["m1"].subscribed_topic_regex == "orders"
    assert bench.topics_of("orders") == {"orders"}


def test_members_share_what_was_resolved_for_the_first(bench: ExpressionBench) -> None:
    bench.join_by("m1", "orders")
    resolved = bench.group().expressions["orders"]
    bench.go_on("m1")
    second = bench.join_by("m2", "orders")
    assert bench.group().expressions["orders"] is resolved
    bench.settle("m1", "m2")
    owned = [m.assigned_partitions for m in bench.group().members.values()]
    assert [len(topics[ORDERS]) for topics in owned] == [2, 2]
    assert second.member_epoch == bench.group().epoch


def test_the_end_of_an_expression_is_its_last_members(bench: ExpressionBench) -> None:
    bench.join_by("m1", "orders")
    bench.join_by("m2", "orders")
    bench.leave("m1")
    assert set(bench.group().expressions) == {"orders"}
    bench.leave("m2")
    assert set(bench.group().expressions) == set()


def test_a_member_that_goes_over_to_names_ends_its_expression_at_once(
    bench: ExpressionBench,
) -> None:
    bench.join_by("m1", "orders")
    bench.go_on("m1")
    epoch = bench.group().epoch
    bench.go_on("m1", subscribed_topic_regex="", topics=["payments"])
    assert bench.group().expressions == {}
    assert bench.group().epoch == epoch + 1
    assert bench.settle("m1") == {"m1": {PAYMENTS: {0, 1}}}


def test_names_and_expressions_add_up(bench: ExpressionBench) -> None:
    bench.join("m1", ["payments"], subscribed_topic_regex="ord.*")
    bench.advance(0)
    assert bench.settle("m1") == {"m1": {ORDERS: {0, 1, 2, 3}, PAYMENTS: {0, 1}}}


def test_topics_that_come_are_found_with_a_heartbeat_after_a_while(bench: ExpressionBench) -> None:
    bench.join_by("m1", "orders.*")
    bench.go_on("m1")
    bench.topics.put("orders-2", b"n" * 16, 1)
    bench.change_topics("orders-2", has_new=True)
    bench.go_on("m1")
    assert bench.topics_of("orders.*") == {"orders"}, "resolved a moment ago"
    bench.later()
    bench.go_on("m1")
    assert bench.topics_of("orders.*") == {"orders", "orders-2"}
    assert bench.settle("m1") == {"m1": {ORDERS: {0, 1, 2, 3}, b"n" * 16: {0}}}


def test_topics_that_go_are_given_up(bench: ExpressionBench) -> None:
    bench.join_by("m1", "orders|payments")
    bench.settle("m1")
    bench.topics.drop("payments")
    bench.change_topics("payments")
    assert bench.settle("m1") == {"m1": {ORDERS: {0, 1, 2, 3}}}


def test_expressions_are_resolved_again_when_they_are_old(bench: ExpressionBench) -> None:
    bench.join_by("m1", "orders.*")
    bench.topics.put("orders-2", b"n" * 16, 1)  # and nobody is told
    for _ in range(REFRESH_MS // 30_000):
        bench.go_on("m1")
        bench.advance(30_000)
    assert bench.topics_of("orders.*") == {"orders"}
    bench.advance(1)
    bench.go_on("m1")
    assert bench.topics_of("orders.*") == {"orders", "orders-2"}


def test_nothing_is_rebalanced_when_an_expression_matches_what_it_did(
    bench: ExpressionBench,
) -> None:
    bench.join_by("m1", "orders")
    bench.go_on("m1")
    epoch, resolved = bench.group().epoch, bench.group().expressions["orders"]
    bench.topics.put("else", b"e" * 16, 1)
    bench.change_topics("else", has_new=True)
    bench.later()
    bench.go_on("m1")
    assert bench.group().epoch == epoch
    assert bench.group().expressions["orders"].timestamp_ms > resolved.timestamp_ms


def test_topics_that_the_client_may_not_know_of_do_not_match(bench: ExpressionBench) -> None:
    bench.join_by("m1", ".*", is_topic_allowed=lambda topic: topic != "payments")
    assert bench.topics_of(".*") == {"orders"}


def test_a_group_with_many_topics_gives_way_between_slices(bench: ExpressionBench) -> None:
    for number in range(MATCHES_PER_TURN):
        bench.topics.put(f"topic-{number}", number.to_bytes(16, "big"), 1)
    bench.join("m1", None, subscribed_topic_regex="topic-.*")
    bench.timers.run_due(bench.clock.monotonic_ms())
    assert bench.group().expressions == {}, "not all in one turn"
    bench.advance(0)
    assert len(bench.topics_of("topic-.*")) == MATCHES_PER_TURN


def test_a_group_gives_way_between_expressions(bench: ExpressionBench) -> None:
    """Each may have to be compiled, and a client may bring as many as it likes."""
    bench.join("m1", None, subscribed_topic_regex="orders.*")
    bench.advance(0)
    bench.join("m2", None, subscribed_topic_regex="payments.*")
    bench.advance(BATCH_INTERVAL_MS + 1)
    bench.beat("m2", bench.group().members["m2"].member_epoch)
    bench.timers.run_due(bench.clock.monotonic_ms())
    assert bench.group().expressions.keys() == {"orders.*"}
    bench.advance(0)
    assert bench.topics_of("payments.*") == {"payments"}


def test_a_group_that_ends_while_it_is_resolved_stays_gone(bench: ExpressionBench) -> None:
    bench.join("m1", None, subscribed_topic_regex="orders")
    bench.leave("m1")
    bench.coordinator.note_leadership(bench.partition_of(), 1, is_leader=False)
    bench.advance(0)
    assert bench.coordinator.consumer_groups == []


def test_what_was_resolved_survives_a_restart_of_the_broker(bench: ExpressionBench) -> None:
    bench.join_by("m1", "orders")
    bench.settle("m1")
    before = bench.group().expressions
    bench.restart()
    assert bench.group().expressions == before
    assert bench.group().subscribed_topics == {"orders"}


def test_a_new_coordinator_resolves_again_what_is_older_than_its_topics(
    bench: ExpressionBench,
) -> None:
    bench.join_by("m1", "orders.*")
    bench.settle("m1")
    bench.topics.put("orders-2", b"n" * 16, 1)
    bench.restart()
    bench.change_topics("orders-2", has_new=True)
    bench.later()
    bench.go_on("m1")
    assert bench.topics_of("orders.*") == {"orders", "orders-2"}


def test_serving_imports_neither_re2_nor_xxhash() -> None:
    script = (
        "import sys, odradek.broker.start, odradek.broker.broker\n"
        "import odradek.coordinator.group.factory\n"
        "assert not {'re2', 'xxhash'} & set(sys.modules)"
    )
    subprocess.run((sys.executable, "-c", script), check=True)


def test_resolving_is_not_begun_twice(bench: ExpressionBench) -> None:
    bench.join("m1", None, subscribed_topic_regex="orders")
    bench.beat("m1", bench.group().members["m1"].member_epoch)
    epoch = bench.group().epoch
    bench.advance(0)
    assert bench.group().epoch == epoch + 1
    assert bench.group(GROUP).expressions["orders"].topics == {"orders"}
