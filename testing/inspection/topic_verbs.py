"""Topics, made and deleted without a client; all of them emptied, kept and put back."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from ...common.errors import KafkaError
from ...controller.topics.new_topic import NewTopic
from ...metadata.metadata_waiting import partitions_are_led, topics_are_gone, wait_for_metadata
from ..control.verbs import VerbError
from ..outages.broker_clock import BrokerClock
from . import keeping, resetting
from .request_log import RequestLog

if TYPE_CHECKING:
    from ..control.verbs import Controlled

logger = logging.getLogger(__name__)

WAIT_MS_MAX = 40_000
LOOK_SECONDS = 0.002


async def create(
    target: Controlled, name: str, partitions: int, replication_factor: int, config: dict[str, str]
) -> None:
    """Create a topic; answers when it is led."""
    wish = NewTopic(name, partitions, replication_factor, configs=list(config.items()))
    try:
        (created,) = await target.broker.controller.create_topics([wish])
    except KafkaError as refusal:
        raise VerbError(_sentence(f"topic {name} is not made", refusal)) from None
    if created.error is not None:
        raise VerbError(_sentence(f"topic {name} is not made", created.error))
    await wait_for(
        target, name, partitions if created.plan is None else len(created.plan.assignment)
    )


async def create_many(target: Controlled, names: list[str]) -> None:
    """Create topics with one partition each; answers when they are led."""
    wishes = [NewTopic(name, 1) for name in names]
    for created in await target.broker.controller.create_topics(wishes):
        if created.error is not None:
            raise VerbError(_sentence(f"topic {created.name} is not made", created.error))
    is_led = partitions_are_led([(name, 1) for name in names])
    if not await wait_for_metadata(target.broker.metadata_cache, is_led, WAIT_MS_MAX):
        raise TimeoutError(f"not all of {len(names)} topics are led")


async def wait_for(target: Controlled, name: str, partitions: int) -> None:
    """Wait until this broker knows who leads all partitions of a topic."""
    is_led = partitions_are_led([(name, partitions)])
    if not await wait_for_metadata(target.broker.metadata_cache, is_led, WAIT_MS_MAX):
        raise TimeoutError(f"not all of the {partitions} partitions of {name} are led")


async def wait_gone(target: Controlled, names: list[str]) -> None:
    """Wait until this broker knows none of some topics any more."""
    is_gone = topics_are_gone(names)
    if not await wait_for_metadata(target.broker.metadata_cache, is_gone, WAIT_MS_MAX):
        raise TimeoutError(f"not all of {', '.join(names)} are gone yet")


async def delete(target: Controlled, names: list[str]) -> None:
    """Delete topics; answers when they and their logs are gone."""
    known = target.broker.metadata_cache.snapshot.topic_ids
    missing = [name for name in names if name not in known]
    if missing:
        raise VerbError(f"there is no topic {', '.join(missing)}")
    await _delete(target, names)


async def reset_cluster(target: Controlled) -> None:
    """Delete all topics of a cluster; this broker is its controller."""
    await _delete(target, sorted(target.broker.metadata_cache.get_all_topics()))


async def _delete(target: Controlled, names: list[str]) -> None:
    broker = target.broker
    ids = {broker.metadata_cache.snapshot.topic_ids[name]: name for name in names}
    try:
        outcomes = await broker.controller.delete_topics(ids, timeout_ms=WAIT_MS_MAX)
    except KafkaError as refusal:
        raise VerbError(_sentence("no topic is deleted", refusal)) from None
    for topic_id, outcome in outcomes.items():
        if outcome is not None:
            raise VerbError(_sentence(f"topic {ids[topic_id]} is not deleted", outcome))
    await wait_gone(target, names)


async def reset(target: Controlled) -> None:
    """Empty a broker that is alone: no topics, groups or transactions; forget its requests."""
    broker = target.broker
    try:
        async with broker.controller.acting() as term:
            await resetting.empty(broker, term)
    except KafkaError as refusal:
        raise VerbError(_sentence("the broker cannot be reset now", refusal)) from None
    if isinstance(target.clock, BrokerClock):
        target.clock.set_right()
    for watcher in target.hooks.watchers:
        if isinstance(watcher, RequestLog):
            watcher.clear()


def snapshot(target: Controlled) -> str:
    """Keep all topics as they are; answers the name of the snapshot."""
    if len(target.broker.metadata_cache.snapshot.alive_brokers) > 1:
        raise VerbError("a snapshot is of a broker that is alone, and others are there")
    return keeping.keep(target.broker)


async def restore(target: Controlled, name: str) -> None:
    """Have all topics be as a snapshot keeps them; answers when they are served."""
    broker = target.broker
    topics = keeping.find(broker, name)
    epochs = {
        hosted.topic_id: hosted.leader_epoch
        for hosted in broker.replica_manager.hosted.online.values()
    }
    try:
        async with broker.controller.acting() as term:
            await resetting.empty(broker, term)
            await keeping.put_back(broker, term, name, topics, epochs)
    except KafkaError as refusal:
        raise VerbError(_sentence(f"snapshot {name} cannot be restored", refusal)) from None
    counts = [(topic, len(kept.partitions)) for topic, kept in topics.items()]
    led = partitions_are_led(counts)
    if not await wait_for_metadata(broker.metadata_cache, led, WAIT_MS_MAX):
        raise TimeoutError(f"not all of the topics of snapshot {name} are led yet")
    keeping.move_starts(broker, topics)
    with trio.fail_after(WAIT_MS_MAX / 1000):
        while broker.group_coordinator.is_loading or broker.transaction_coordinator.is_loading:
            await trio.sleep(LOOK_SECONDS)


def _sentence(what: str, refusal: KafkaError) -> str:
    return f"{what}: {refusal.message or refusal.code.name}"
