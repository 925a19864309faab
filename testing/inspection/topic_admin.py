"""Topics, made and deleted without a client; all of them emptied, kept and put back."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ...common.errors import KafkaError
from ..control.framing import VerbError
from ..control.verbs import verb
from .states import Snapshot

if TYPE_CHECKING:
    from ...controller.topics.planning import TopicCreation
    from ..control.target import ControlTarget

logger = logging.getLogger(__name__)

LEADER_WAIT_MS_MAX = 40_000


@verb
async def create_topic(
    target: ControlTarget,
    name: str,
    partitions: int = 1,
    replication_factor: int | None = None,
    config: dict[str, str] | None = None,
) -> None:
    """Create a topic; returns when all of its partitions are led.

    Args:
        name: no topic has it.
        partitions: how many.
        replication_factor: None: as the broker's settings say.
        config: the topic's own settings, by Kafka's names.
    """
    from ...controller.topics.planning import TopicCreation

    configs = [(key, str(value)) for key, value in (config or {}).items()]
    factor = -1 if replication_factor is None else replication_factor
    counts = await _create(target, [TopicCreation(name, partitions, factor, configs=configs)])
    await _wait_until_led(target, counts)


@verb
async def create_topics(target: ControlTarget, names: list[str]) -> None:
    """Create topics with one partition each; returns when they are led."""
    from ...controller.topics.planning import TopicCreation

    await _wait_until_led(target, await _create(target, [TopicCreation(name, 1) for name in names]))


async def _create(target: ControlTarget, topics: list[TopicCreation]) -> list[tuple[str, int]]:
    """Create topics; returns their names and numbers of partitions."""
    counts = []
    try:
        for created in await target.broker.controller.create_topics(topics):
            if created.error is not None:
                raise created.error
            assert created.plan is not None
            counts.append((created.name, len(created.plan.assignment)))
    except KafkaError as refusal:
        names = ", ".join(topic.name for topic in topics)
        raise _refused(f"topic {names} is not made", refusal) from None
    return counts


@verb
async def ensure_topic(target: ControlTarget, name: str) -> None:
    """Have one of Kafka's own topics be there, as the first client makes it; on the controller."""
    if name not in target.broker.metadata_cache.snapshot.topic_ids:
        refusals = await target.broker.controller.ensure_topics([name])
        for refusal in refusals.values():
            raise _refused(f"topic {name} is not made", refusal)
    await _wait_until_led(target, [(name, 1)])


@verb
async def wait_until_led(target: ControlTarget, name: str, partitions: int) -> None:
    """Wait until this broker knows who leads all partitions of a topic."""
    await _wait_until_led(target, [(name, partitions)])


async def _wait_until_led(target: ControlTarget, counts: list[tuple[str, int]]) -> None:
    from ...metadata.metadata_waiting import partitions_are_led, wait_for_metadata

    is_led = partitions_are_led(counts)
    if not await wait_for_metadata(target.broker.metadata_cache, is_led, LEADER_WAIT_MS_MAX):
        names = ", ".join(name for name, _ in counts)
        raise TimeoutError(f"not all partitions of {names} are led")


@verb
async def wait_until_gone(target: ControlTarget, names: list[str]) -> None:
    """Wait until this broker knows none of some topics any more."""
    await _wait_until_gone(target, names)


async def _wait_until_gone(target: ControlTarget, names: list[str]) -> None:
    from ...metadata.metadata_waiting import topics_are_gone, wait_for_metadata

    is_gone = topics_are_gone(names)
    if not await wait_for_metadata(target.broker.metadata_cache, is_gone, LEADER_WAIT_MS_MAX):
        raise TimeoutError(f"not all of {', '.join(names)} are gone yet")


@verb
async def delete_topics(target: ControlTarget, names: list[str]) -> None:
    """Delete topics; returns when they and their logs are gone."""
    known = target.broker.metadata_cache.snapshot.topic_ids
    missing = [name for name in names if name not in known]
    if missing:
        raise VerbError(f"there is no topic {', '.join(missing)}")
    await _delete(target, names)


@verb
async def delete_all_topics(target: ControlTarget) -> None:
    """Delete all topics of a cluster; this broker is its controller."""
    await _delete(target, sorted(target.broker.metadata_cache.get_all_topics()))


async def _delete(target: ControlTarget, names: list[str]) -> None:
    broker = target.broker
    ids = {broker.metadata_cache.snapshot.topic_ids[name]: name for name in names}
    try:
        outcomes = await broker.controller.delete_topics(ids, timeout_ms=LEADER_WAIT_MS_MAX)
    except KafkaError as refusal:
        raise _refused("no topic is deleted", refusal) from None
    for topic_id, outcome in outcomes.items():
        if outcome is not None:
            raise _refused(f"topic {ids[topic_id]} is not deleted", outcome)
    await _wait_until_gone(target, names)


@verb
async def reset(target: ControlTarget) -> None:
    """Empty the broker: topics, groups, transactions and settings of topics are gone.

    Connected clients stay so, and find their topics gone; one that goes on may have its topic
    made anew (auto.create.topics.enable). Members of groups join again; but those of consumer
    groups (KIP-848) get GROUP_ID_NOT_FOUND, which librdkafka takes for fatal.
    Numbers of producers are not given out again. The requests it was sent are forgotten, and
    its wall clock is right. Faults stay.
    """
    from ..outages.clock import BrokerClock
    from . import snapshots

    broker = target.broker
    try:
        async with broker.controller.acting() as controller:
            await snapshots.remove_all_topics(broker, controller)
    except KafkaError as refusal:
        raise _refused("the broker cannot be reset now", refusal) from None
    if isinstance(target.clock, BrokerClock):
        target.clock.set_right()
    target.request_log.clear()


@verb
def snapshot(target: ControlTarget) -> Snapshot:
    """Keep all topics as they are, and with them committed offsets and transactions."""
    from . import snapshots

    if len(target.broker.metadata_cache.snapshot.alive_brokers) > 1:
        raise VerbError("a snapshot is of a broker that is alone, and others are there")
    return Snapshot(snapshots.take(target.broker))


@verb
async def restore(target: ControlTarget, snapshot: Snapshot) -> None:
    """Have all topics be as they were: with their ids, records, offsets and settings.

    What has come since is gone. Connected clients stay so; a consumer whose position is behind
    the end now gets OFFSET_OUT_OF_RANGE.
    """
    from . import snapshots

    broker = target.broker
    topics = snapshots.find(broker, snapshot.name)
    epochs = {
        hosted.topic_id: hosted.leader_epoch
        for hosted in broker.replica_manager.partitions.values()
    }
    try:
        async with broker.controller.acting() as controller:
            await snapshots.remove_all_topics(broker, controller)
            await snapshots.put_back(broker, controller, snapshot.name, topics, epochs)
    except KafkaError as refusal:
        raise _refused(f"snapshot {snapshot.name} cannot be restored", refusal) from None
    await _wait_until_led(target, [(name, len(topic.partitions)) for name, topic in topics.items()])
    snapshots.advance_log_starts(broker, topics)
    if not await target.wait_until(
        lambda: (
            not (broker.coordinators.group.is_loading or broker.coordinators.transaction.is_loading)
        ),
        LEADER_WAIT_MS_MAX / 1000,
    ):
        raise TimeoutError(f"groups or transactions of snapshot {snapshot.name} are not loaded yet")


def _refused(what: str, refusal: KafkaError) -> VerbError:
    return VerbError(f"{what}: {refusal.message or refusal.code.name}")
