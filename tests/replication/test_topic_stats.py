"""What goes in and out of topics, counted."""

from __future__ import annotations

from odradek.common.errors import ErrorCode
from odradek.replication.topic_stats import TopicStats, TopicStatsTable


def test_the_total_keeps_what_topics_that_are_gone_have_counted():
    table = TopicStatsTable()
    table.join("a").bytes_in += 10
    table.join("b").bytes_in += 5
    table.leave("a")
    assert [topic for topic, _ in table.by_topic()] == ["b"]
    assert table.find("a") is None
    assert table.total().bytes_in == 15


def test_partitions_of_a_topic_share_their_counters_until_the_last_one_leaves():
    table = TopicStatsTable()
    first, second = table.join("a"), table.join("a")
    assert first is second
    table.leave("a")
    assert table.find("a") is first
    table.leave("a")
    assert table.find("a") is None


def test_a_topic_that_comes_back_begins_at_zero_and_the_total_goes_on():
    table = TopicStatsTable()
    table.join("a").messages_in += 3
    table.leave("a")
    table.join("a").messages_in += 1
    assert table.by_topic()[0][1].messages_in == 1
    assert table.total().messages_in == 4


def test_a_refusal_that_clients_meet_at_times_is_no_failed_request():
    stats = TopicStats()
    stats.count_refused_append(ErrorCode.NOT_LEADER_OR_FOLLOWER, 100)
    assert (stats.total_produce_requests, stats.failed_produce_requests) == (1, 0)
    stats.count_refused_append(ErrorCode.INVALID_RECORD, 100)
    assert (stats.total_produce_requests, stats.failed_produce_requests) == (2, 1)
    assert stats.bytes_rejected == 0
    stats.count_refused_append(ErrorCode.MESSAGE_TOO_LARGE, 100)
    assert (stats.failed_produce_requests, stats.bytes_rejected) == (1, 100)


def test_bytes_for_consumers_and_for_followers_are_counted_apart():
    stats = TopicStats()
    stats.count_fetch(ErrorCode.NONE, 7, follower=False, moving=False)
    stats.count_fetch(ErrorCode.NONE, 20, follower=True, moving=False)
    stats.count_fetch(ErrorCode.NONE, 300, follower=True, moving=True)
    stats.count_fetch(ErrorCode.OFFSET_OUT_OF_RANGE, 0, follower=False, moving=False)
    assert stats.bytes_out == 7
    assert stats.replication_bytes_out == 320
    assert stats.reassignment_bytes_out == 300
    assert (stats.total_fetch_requests, stats.failed_fetch_requests) == (4, 0)


def test_changes_of_an_isr_are_shrinks_or_expansions_by_its_size():
    stats = TopicStats()
    stats.count_isr_change(3, 2)
    stats.count_isr_change(2, 1)
    stats.count_isr_change(1, 3)
    assert (stats.isr_shrinks, stats.isr_expands) == (2, 1)
