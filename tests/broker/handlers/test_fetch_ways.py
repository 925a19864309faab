"""Fetches that leave idle partitions alone answer what fetches that look at all of them do.

Two readers ask for the same at the same moments, of which one is made to look at everything each
time; whatever happens to the partitions, they get the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.fetch_history import (
    NOW_MS,
    Wishes,
    counters,
    history_of,
    limits,
    sent,
    session_id,
    without_session,
)
from support.selection import short

from odradek.broker.request.fetch_sessions import FetchSession
from odradek.common.topic_partition import TopicPartition
from odradek.protocol import messages
from odradek.protocol.records import build_batch

if TYPE_CHECKING:
    from conftest import Bench

STEPS = 80
Fetch = messages.FetchRequest


@pytest.mark.parametrize("seed", short(range(16), 6))
async def test_without_a_session_the_fast_path_answers_as_the_general_one(
    bench: Bench, seed: int
) -> None:
    history = await history_of(bench, seed)
    chance, wishes = history.chance, Wishes(history)
    version = 4 + seed % 15 if seed % 3 else 13 + seed % 6
    short, general = bench.client, bench.another_client("test")
    common = limits(chance)
    shortened = 0
    for _ in range(STEPS):
        for _ in range(chance.randrange(3)):
            history.step()
            assert sent(short) == sent(general)
        if short.connection.is_parked:
            assert general.connection.is_parked
            continue
        if chance.random() < 0.02:
            common = limits(chance)
        wishes.move_on()
        topics = wishes.topics(version)
        if chance.random() < 0.03:
            topics += wishes.topics(version, chance.sample(wishes.order, 1))  # named twice
        request = Fetch(session_epoch=-1, topics=topics, **common)
        general.connection.implicit_session = None
        counted = []
        for client in (short, general):
            before = counters(bench)
            client.send(request, version)
            counted.append(counters(bench) - before)
        assert sent(short) == sent(general)
        assert counted[0] == counted[1]
        known = short.connection.implicit_session
        shortened += known is not None and bool(known.idle)
        assert (known is None) == (version < 7)
    assert shortened > 5 or version < 7


@pytest.mark.parametrize("seed", short(range(10), 4))
async def test_in_a_session_idle_partitions_are_answered_as_if_they_were_looked_at(
    bench: Bench, seed: int
) -> None:
    history = await history_of(bench, seed)
    chance, wishes = history.chance, Wishes(history)
    version = 7 + seed % 12
    readers = [bench.client, bench.another_client("test")]
    sessions: list[int] = []
    common = limits(chance)
    for client in readers:
        client.send(
            Fetch(session_epoch=0, topics=wishes.topics(version), **{**common, "max_wait_ms": 0}),
            version,
        )
        sessions.append(session_id(sent(client), version))
    epoch, idle = 0, 0
    named = set(wishes.order)
    for _ in range(STEPS):
        for _ in range(chance.randrange(3)):
            history.step()
            first, second = (without_session(sent(each), version) for each in readers)
            assert first == second
        if readers[0].connection.is_parked:
            assert readers[1].connection.is_parked
            continue
        epoch += 1
        changed = chance.sample(wishes.order, chance.randrange(3))
        changed += [
            where
            for where in wishes.order
            if where not in changed
            and history.is_refused(where, wishes.wishes[where])
            and chance.random() < 0.6
        ]
        for where in changed:
            wishes.wishes[where] = history.wish(where)
        forgotten = [where for where in chance.sample(wishes.order, 1) if chance.random() < 0.1]
        forgotten = [where for where in forgotten if where not in changed and where in named]
        named = (named | set(changed)) - set(forgotten)
        by_name = [
            Fetch.ForgottenTopic(
                partitions=[where.partition], **wishes.name_of(where.topic, version)
            )
            for where in forgotten
        ]
        found = {each.id: each for each in bench.broker.fetch_sessions}
        looks_at_all: FetchSession = found[sessions[1]]
        looks_at_all.mark_all_active()
        for client, session in zip(readers, sessions, strict=True):
            client.send(
                Fetch(
                    session_id=session,
                    session_epoch=epoch,
                    topics=wishes.topics(version, changed),
                    forgotten_topics_data=by_name,
                    **common,
                ),
                version,
            )
        first, second = (without_session(sent(each), version) for each in readers)
        assert first == second
        idle += len(found[sessions[0]].idle)
    assert idle > 20


@pytest.mark.parametrize("has_memo", [True, False])
async def test_partitions_that_wake_a_fetch_are_read_in_its_order(
    bench: Bench, has_memo: bool
) -> None:
    """The first of a fetch gets its bytes first (KIP-74), whichever was written to first."""
    history = await history_of(bench, 1)
    wishes = Wishes(history)
    order = [TopicPartition("t", 3), TopicPartition("t", 1), TopicPartition("t", 2)]
    for where in order:
        wishes.wishes[where] = Fetch.FetchPartition(
            partition=where.partition, fetch_offset=0, partition_max_bytes=1 << 20
        )
    client = bench.client
    limits = {"min_bytes": 200, "max_bytes": 250, "session_epoch": -1, "max_wait_ms": 3_600_000}
    for offset in range(3):
        wishes.wishes[order[2]].fetch_offset = offset
        if not has_memo:
            client.connection.memos.clear()
        client.send(Fetch(topics=wishes.topics(16, order), **limits), 16)
        assert not sent(client)
        if offset < 2:
            assert history.append(order[2], build_batch([(None, b"v" * 200, NOW_MS, [])]))
            bench.broker.server.finish_outside_work()
            assert sent(client)
    idle = set(client.connection.implicit_session.idle)
    assert idle == (set() if has_memo else set(order[:2]))
    batch = build_batch([(None, b"v" * 60, NOW_MS, [])])
    assert 100 < len(batch) < 200 < 250 < 2 * len(batch)
    for where in reversed(order[:2]):
        assert history.append(where, batch)
        bench.broker.server.finish_outside_work()
    answer = await client.receive(1, 16)
    (topic,) = answer.responses
    assert [each.partition_index for each in topic.partitions] == [3, 1, 2]
    assert [len(each.records) for each in topic.partitions] == [len(batch), 0, 0]
