"""When metadata is asked for: by age, by request, after a backoff (article 002, section 1)."""

from __future__ import annotations

import pytest
from support.client_parts import (
    BACKOFF_MAX_MS,
    BACKOFF_MS,
    MAX_AGE_MS,
    NoChance,
    answer,
    make_metadata,
    partition,
    topic,
)

from odradek.client.metadata.metadata import MetadataQuery
from odradek.client.network.backoff import ExponentialBackoff
from odradek.common.errors import ErrorCode

NEWS = answer(topic("t", partition(0, leader=1)))


def progress(number: int):
    """An answer that differs from those with other numbers."""
    return answer(topic("t", partition(0, leader=1, epoch=number)))


def test_the_first_update_is_due_at_once():
    metadata = make_metadata()
    assert metadata.time_to_next_update(0) == 0
    assert metadata.next_query(0) == MetadataQuery([], 0, is_partial=False)


def test_metadata_is_refreshed_when_it_is_older_than_max_age():
    metadata = make_metadata("t")
    metadata.update(NEWS, 1_000)
    assert metadata.time_to_next_update(1_000) == MAX_AGE_MS
    assert metadata.time_to_next_update(1_000 + MAX_AGE_MS - 1) == 1
    assert metadata.time_to_next_update(1_000 + MAX_AGE_MS) == 0


def test_a_requested_update_is_due_as_soon_as_the_backoff_is_over():
    metadata = make_metadata("t")
    metadata.update(NEWS, 1_000)
    metadata.request_update()
    assert metadata.is_update_requested
    assert metadata.time_to_next_update(1_000) == BACKOFF_MS
    assert metadata.time_to_next_update(1_000 + BACKOFF_MS) == 0


def test_an_update_makes_the_version_grow_and_request_update_tells_the_one_so_far():
    metadata = make_metadata("t")
    before = metadata.request_update()
    metadata.update(NEWS, 0)
    assert metadata.update_version == before + 1
    assert metadata.cluster.version == before + 1
    assert metadata.request_update() == before + 1


def test_a_full_answer_fulfils_the_request():
    metadata = make_metadata("t")
    metadata.request_update()
    metadata.update(NEWS, 50)
    assert not metadata.is_update_requested
    assert metadata.last_refresh_ms == metadata.last_successful_refresh_ms == 50


def test_a_failed_update_moves_last_refresh_and_not_last_successful_refresh():
    metadata = make_metadata("t")
    metadata.update(NEWS, 50)
    version = metadata.request_update()
    metadata.failed_update(500)
    assert metadata.last_refresh_ms == 500
    assert metadata.last_successful_refresh_ms == 50
    assert metadata.is_update_requested
    assert metadata.update_version == version


def test_failed_updates_back_off_exponentially_up_to_the_maximum():
    metadata = make_metadata("t")
    waits = []
    for _ in range(6):
        metadata.failed_update(0)
        waits.append(metadata.time_to_next_update(0))
    assert waits == [100, 200, 400, 800, 1_000, 1_000]


def test_a_successful_update_ends_the_backoff_of_failures():
    metadata = make_metadata("t")
    for _ in range(5):
        metadata.failed_update(0)
    metadata.update(progress(1), 10)
    metadata.request_update()
    assert metadata.time_to_next_update(10) == BACKOFF_MS


def test_answers_that_say_nothing_new_make_the_next_rarer():
    metadata = make_metadata("t")
    waits = []
    for _ in range(5):
        metadata.update(NEWS, 0)
        metadata.request_update(is_retry=True)
        waits.append(metadata.time_to_next_update(0))
    # The first one is news; the second is the first that is not.
    assert waits == [100, 100, 200, 400, 800]


def test_news_make_the_next_update_as_soon_as_ever():
    metadata = make_metadata("t")
    for _ in range(5):
        metadata.update(NEWS, 0)
    metadata.update(progress(7), 0)
    metadata.request_update(is_retry=True)
    assert metadata.time_to_next_update(0) == BACKOFF_MS


def test_a_request_for_something_new_does_not_wait_for_answers_that_said_nothing_new():
    metadata = make_metadata("t")
    for _ in range(5):
        metadata.update(NEWS, 0)
    metadata.request_update()
    assert metadata.time_to_next_update(0) == BACKOFF_MS


def test_a_periodic_update_forgets_that_answers_said_nothing_new():
    metadata = make_metadata("t")
    for _ in range(6):
        metadata.update(NEWS, 0)
    assert metadata.time_to_allow_update(BACKOFF_MAX_MS - 1) == 1
    assert metadata.time_to_allow_update(MAX_AGE_MS) == 0
    metadata.request_update(is_retry=True)
    metadata.last_refresh_ms = MAX_AGE_MS
    assert metadata.time_to_allow_update(MAX_AGE_MS) == BACKOFF_MS


def test_a_new_topic_is_requested_at_once_and_alone():
    metadata = make_metadata("t")
    metadata.update(NEWS, 1_000)
    metadata.add_topic("new", 1_000)
    assert metadata.time_to_next_update(1_000) == 0
    query = metadata.next_query(1_000)
    assert query.topics == ["new"]
    assert query.is_partial


def test_a_partial_answer_leaves_the_age_of_the_rest_as_it_is():
    metadata = make_metadata("t")
    metadata.update(NEWS, 1_000)
    metadata.add_topic("new", 2_000)
    query = metadata.next_query(2_000)
    metadata.update(answer(topic("new", partition(0, 1))), 2_000, query=query)
    assert metadata.last_refresh_ms == 2_000
    assert metadata.last_successful_refresh_ms == 1_000
    assert not metadata.is_update_requested


def test_a_topic_added_while_an_answer_is_on_its_way_is_requested_afterwards():
    metadata = make_metadata("t")
    query = metadata.next_query(0)
    metadata.add_topic("late", 0)
    metadata.update(NEWS, 0, query=query)
    assert metadata.need_partial_update
    assert metadata.next_query(0).topics == ["late"]


def test_everything_is_requested_when_an_update_was_requested_beside_a_new_topic():
    metadata = make_metadata("t")
    metadata.update(NEWS, 0)
    metadata.add_topic("new", 0)
    metadata.request_update()
    query = metadata.next_query(0)
    assert query.topics == ["t", "new"]
    assert not query.is_partial


def test_all_topics_are_requested_where_all_are_kept():
    metadata = make_metadata(all_topics=True)
    metadata.update(answer(topic("any", partition(0, 1))), 0)
    metadata.add_topic("any", 0)
    metadata.request_update()
    assert metadata.next_query(0).topics is None
    assert "any" in metadata.cluster.topics


def test_a_topic_nobody_requested_is_forgotten_at_an_update_after_its_idle_time():
    metadata = make_metadata("t", idle_ms=5_000)
    metadata.update(NEWS, 4_999)
    assert metadata.next_query(4_999 + MAX_AGE_MS).topics == ["t"]
    metadata.update(NEWS, 5_000)
    assert "t" not in metadata.cluster.topics
    assert metadata.next_query(5_000 + MAX_AGE_MS).topics == []
    assert metadata.epochs.get("t", 0) is None


def test_a_topic_that_is_requested_again_is_kept_for_longer():
    metadata = make_metadata("t", idle_ms=5_000)
    metadata.update(NEWS, 0)
    metadata.add_topic("t", 4_000)
    metadata.update(NEWS, 5_000)
    assert "t" in metadata.cluster.topics


def test_a_new_topic_does_not_expire_before_it_was_answered():
    metadata = make_metadata("t", idle_ms=5_000)
    metadata.update(NEWS, 9_000)
    assert "t" in metadata.cluster.topics


def test_listeners_are_notified_of_each_update_with_its_snapshot():
    metadata = make_metadata("t")
    seen = []
    metadata.listeners.append(seen.append)
    metadata.update(NEWS, 0)
    metadata.failed_update(10)
    metadata.update(progress(3), 20)
    assert [cluster.partition("t", 0).leader_epoch for cluster in seen] == [0, 3]
    assert seen[-1] is metadata.cluster


def test_a_listener_that_fails_keeps_neither_the_update_nor_other_listeners_back():
    metadata = make_metadata("t")
    seen = []

    def fail(cluster):
        raise LookupError("planted")

    metadata.listeners += [fail, seen.append]
    metadata.update(NEWS, 0)
    assert seen == [metadata.cluster]


@pytest.mark.parametrize(
    "code", [ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
)
def test_an_answer_with_a_passing_error_of_a_topic_requests_the_next_update(code):
    metadata = make_metadata("t")
    metadata.update(answer(topic("t", error=code)), 0)
    assert metadata.need_full_update


def test_an_answer_with_a_passing_error_of_a_partition_requests_the_next_update():
    metadata = make_metadata("t")
    without = partition(0, leader=-1, error=ErrorCode.LEADER_NOT_AVAILABLE)
    metadata.update(answer(topic("t", without)), 0)
    assert metadata.need_full_update


def test_an_error_that_will_not_pass_requests_nothing():
    metadata = make_metadata("t")
    metadata.update(answer(topic("t", error=ErrorCode.INVALID_TOPIC_EXCEPTION)), 0)
    assert not metadata.need_full_update


def test_backoff_stays_within_a_fifth_of_the_doubled_wait_and_below_the_maximum():
    from random import Random

    backoff = ExponentialBackoff(100, 1_000, Random(5))
    for attempts in range(12):
        plain = min(100 * 2**attempts, 1_000)
        waits = [backoff.wait_ms(attempts) for _ in range(200)]
        assert min(waits) >= plain * 0.8 - 1
        assert max(waits) <= min(plain * 1.2, 1_000)
        assert len(set(waits)) > 10


def test_backoff_is_constant_where_the_maximum_is_no_larger():
    backoff = ExponentialBackoff(500, 200, NoChance())
    assert [backoff.wait_ms(attempts) for attempts in range(3)] == [200, 200, 200]
