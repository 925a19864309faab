"""UpdateMetadata (6), versions 0-8: the controller says who is alive and who leads what.

Behaviour: the request becomes the new snapshot at once, whole (article 000), though a long
one is worked out in steps. One of an older
controller is STALE_CONTROLLER_EPOCH, one meant for this broker before its restart
STALE_BROKER_EPOCH. Of a partition whose epochs are far ahead of what any controller has written,
what was known stays. The group coordinator forgets the offsets of partitions that were deleted.
Version notes: 0 knows one plain listener for each broker, 3 names listeners, 4 tells offline
replicas, 5 groups by topic and brings the broker's epoch, 7 topic ids.
Departures from Kafka: served, not advertised: Kafka 4 has no such API any more.
"""

from __future__ import annotations

from collections.abc import Set

from ...common.errors import ErrorCode, KafkaError
from ...common.partition_state import PartitionState
from ...common.topic_partition import TopicPartition
from ...controller.channel.codec import decode_update_metadata, named_topics
from ...metadata.metadata_cache import MetadataCache, MetadataUpdate
from ...protocol import messages
from ...runtime.long_work import run_in_steps
from ...runtime.steps import Steps
from ..dynamic_config.topic_overrides import read_topic_overrides
from ..interbroker.broker_requests import (
    KnownEpochs,
    find_unwritten,
    require_broker,
    require_current_broker_epoch,
    require_known_controller,
)
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request


@in_task
async def handle_update_metadata(
    context: HandlerContext, request: Request[messages.UpdateMetadataRequest]
) -> messages.UpdateMetadataResponse:
    """Replace the snapshot; tombstone what was deleted."""
    body = request.body
    await require_broker(context, request)
    await require_current_broker_epoch(context, body.broker_epoch)
    await require_known_controller(context, body.controller_epoch)
    cache = context.metadata_cache
    topics = await run_in_steps(named_topics(body))
    # A change of settings between reading those of a new topic and knowing the topic would find no
    # topic to change, and the settings read before it would stay.
    async with context.config_manager.applying:
        known = cache.snapshot.topic_configs
        news = topics - known.keys()
        read = await read_topic_overrides(context.metadata_store, news) if news else {}
        steps = decode_update_metadata(body, lambda topic: known.get(topic) or read.get(topic, {}))
        update = await run_in_steps(steps)
        unwritten = await find_unwritten(
            context, update.partition_states, lambda each: _known_epochs(cache, each)
        )
        if unwritten:
            update = await run_in_steps(_without(update, unwritten, cache))
        is_done = False
        while not is_done:  # begun again where something else has changed the snapshot meanwhile
            prepared = await run_in_steps(cache.prepare(update))
            if not context.replica_manager.admit_controller(body.controller_epoch):
                raise KafkaError(ErrorCode.STALE_CONTROLLER_EPOCH)
            is_done = cache.commit(prepared, request.correlation_id)
    if prepared.deleted:
        coordinator = context.coordinators.group
        await run_in_steps(coordinator.delete_partition_offsets(prepared.deleted))
    return messages.UpdateMetadataResponse()


def _known_epochs(cache: MetadataCache, topic_partition: TopicPartition) -> KnownEpochs:
    state = cache.get_partition_info(*topic_partition)
    return (
        KnownEpochs() if state is None else KnownEpochs(state.leader_epoch, state.partition_epoch)
    )


def _without(
    update: MetadataUpdate, unwritten: Set[TopicPartition], cache: MetadataCache
) -> Steps[MetadataUpdate]:
    """The update, with what was known before of partitions whose new state is refused."""
    states = []
    for state in update.partition_states:
        kept: PartitionState | None = state
        if state.topic_partition in unwritten:
            kept = cache.get_partition_info(*state.topic_partition)
        if kept is not None:
            states.append(kept)
        yield
    return update._replace(partition_states=states)
