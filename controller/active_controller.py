"""One broker's time as the controller: from its election until another's.

Here the parts of the controller come together. All of it is plain decisions and waits for
nothing but the metadata store, so a simulator can drive several of them without trio. One
event is done at a time, whole, as on Kafka's controller thread: see `Controller`, the shell.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from random import Random
from typing import TypeVar

from ..common.errors import ErrorCode
from ..common.live_broker import LiveBroker
from ..common.topic_partition import TopicPartition
from ..config.broker_config import BrokerConfig
from ..metadata_store import znodes
from ..metadata_store.errors import NoNode
from ..metadata_store.store import Delete, MetadataStore
from ..metadata_store.znodes import CorruptNode
from ..runtime.long_work import KeepPace
from .broker_changes import BrokerChanges
from .channel.channel import ControllerChannel, PartitionErrors
from .channel.request_batch import ControllerBrokerRequestBatch
from .context import ControllerContext, PartitionAndReplica, Topic
from .event_queue import Event, Post
from .feature_levels import enable_features
from .fenced_store import FencedStore
from .known_registrations import KnownRegistrations
from .partitions.leadership_writer import LeadershipWriter, PartitionOf
from .partitions.partition_state_machine import PartitionStateMachine
from .partitions.reassignment import Reassignments
from .partitions.replica_state_machine import ReplicaStateMachine
from .partitions.states import PartitionStatus, ReplicaStatus
from .registration import Election, read_live_brokers
from .settings import allows_unclean_election
from .topics.topic_deletion import TopicDeletion
from .topics.topic_nodes import read_topic, read_topic_config, read_topics

logger = logging.getLogger(__name__)

NEW_PARTITIONS_PER_STEP = 25
"""So many new partitions, or those of one topic if it has more, get their leaders in one go."""

TAKEN_UP = frozenset({ErrorCode.NONE, ErrorCode.STALE_CONTROLLER_EPOCH})
"""Of a partition the second says that the broker has this leader epoch, or a later, already."""

NoteT = TypeVar("NoteT")


class ActiveController:
    """What an elected controller knows and does.

    Args:
        broker_id: the elected broker.
        election: which one it won.
        store: an open session on the metadata store.
        channel: sends requests to brokers.
        config: this broker's settings.
        random: for assignments and topic ids.
        post: takes the events that answers lead to.
        keep_pace: awaited wherever there may be thousands of partitions: others have their turns.
    """

    def __init__(
        self,
        broker_id: int,
        election: Election,
        *,
        store: MetadataStore,
        channel: ControllerChannel,
        config: BrokerConfig,
        random: Random,
        post: Post,
        keep_pace: KeepPace,
    ) -> None:
        self.broker_id = broker_id
        self.election = election
        self.config = config
        self.random = random
        self.context = context = ControllerContext()
        context.epoch, context.epoch_version = election
        self.store = FencedStore(store, election.epoch_version)
        self._channel = channel
        self._post = post
        self.keep_pace = keep_pace
        self._is_over = False
        self._doubted: set[int] = set()
        """Brokers that said that a log directory failed."""
        self.batch = ControllerBrokerRequestBatch(
            broker_id,
            context,
            channel,
            on_leader_and_isr=self._led,
            on_deleted=self._deleted,
            keep_pace=keep_pace,
        )
        self._known_registrations = KnownRegistrations(self.store)
        self.leaderships = LeadershipWriter(context, self.store, keep_pace)
        self.partitions = PartitionStateMachine(
            context, self.leaderships, self.batch, self._allows_unclean, keep_pace
        )
        self.replicas = ReplicaStateMachine(context, self.leaderships, self.batch, keep_pace)
        self.deletion = TopicDeletion(
            context, self.store, self.partitions, self.replicas, self.batch, keep_pace
        )
        self.reassignments = Reassignments(
            context,
            self.store,
            self.leaderships,
            self.partitions,
            self.replicas,
            self.batch,
        )
        self.brokers = BrokerChanges(
            context,
            channel,
            self.partitions,
            self.replicas,
            self.batch,
            self.deletion,
            self.reassignments,
            keep_pace,
        )

    def _allows_unclean(self, topic: Topic) -> bool:
        return allows_unclean_election(topic.config, self.config)

    # -- the beginning and the end ------------------------------------------------------

    async def failover(self, restarted: Collection[int] = ()) -> None:
        """Read the store, send every broker its state, and finish what a former controller began.

        After KafkaController.onControllerFailover: brokers learn who is alive before
        which partitions to lead and to follow.

        Args:
            restarted: brokers known to have restarted since any controller sent them a
                request. Their logs may have lost what was not yet on disk: others lead what they
                led, or where all have restarted they themselves, in the next leader epoch, for
                whoever fetches must notice.
        """
        context = self.context
        store = self.store.store
        registered = await read_live_brokers(store)
        restarted_alone = await self._known_registrations.restarted(registered, restarted)
        context.live_brokers = {
            broker_id: broker
            for broker_id, broker in registered.items()
            if broker_id not in restarted_alone
        }
        await enable_features(self.store)
        for topic in await read_topics(store, self.keep_pace):
            context.add_topic(topic)
        for broker in context.live_brokers.values():
            self._channel.add_broker(broker)
        self.batch.add_live_brokers(context.live_brokers)
        self.batch.send()
        await self.replicas.begin()
        await self.partitions.begin(restarted)
        await self._bring_up()
        logger.info(
            "broker %d is the controller of epoch %d, of %d topics and %d partitions",
            self.broker_id,
            context.epoch,
            len(list(context.topics())),
            sum(len(topic.assignment) for topic in context.topics()),
        )
        await self._finish_what_was_begun()
        if restarted_alone:
            logger.info(
                "brokers %s have restarted, and no controller has dealt with that: others lead "
                "what they led",
                sorted(restarted_alone),
            )
            await self.brokers.registrations_changed(registered)
        await self._known_registrations.dealt_with(context.live_brokers)

    async def _bring_up(self) -> None:
        """Every replica that is there hears what it is to do, every partition looks for a leader.

        A replica that is gone leaves its ISR, or writes with acks=all would wait until its
        leader misses it. One batch is one request of a kind to each broker.
        """
        context = self.context
        staying = [topic for topic in context.topics() if not topic.is_being_deleted]
        unled = sum(list(topic.statuses.values()).count(PartitionStatus.NEW) for topic in staying)
        if unled:
            logger.info("%d partitions were never led: going on with them", unled)
        await self.partitions.bring_all_online()
        for status in (ReplicaStatus.ONLINE, ReplicaStatus.OFFLINE):
            replicas: list[PartitionAndReplica] = []
            for topic in staying:
                for replica in topic.replicas():
                    await self.keep_pace()
                    if context.replica_statuses[replica] is status:
                        replicas.append(replica)
            await self.replicas.change(replicas, status)
        await self.batch.add_full_update_metadata(context.live_brokers)
        self.batch.mark_leader_and_isr_full(context.live_brokers)
        self.batch.send()

    async def _finish_what_was_begun(self) -> None:
        for topic in list(self.context.topics()):
            for partition in list(topic.reassignments):
                if not topic.is_being_deleted:
                    await self.reassignments.advance(PartitionOf(topic, partition))
        await self.deletion.finish_former()
        await self.isr_changed()
        await self.directories_changed()

    def resign(self) -> None:
        """Another broker is the controller: send nothing more, and drop the answers under way."""
        self._is_over = True
        for broker_id in list(self.context.live_brokers):
            self._channel.remove_broker(broker_id)

    # -- changes in the store -------------------------------------------------------------

    async def brokers_changed(self) -> None:
        """Registrations came, went or changed."""
        await self.brokers.registrations_changed(await read_live_brokers(self.store.store))
        await self._known_registrations.dealt_with(self.context.live_brokers)

    async def topics_changed(self) -> None:
        """Topics were made or marked for deletion by others than this controller."""
        store = self.store.store
        names = set(await store.children(znodes.TOPICS))
        for name in sorted(names):
            if not self.context.has_name(name):
                topic = await read_topic(store, name, self.keep_pace)
                if topic is not None:
                    self.context.add_topic(topic)
                    await self.lead_new([(topic, topic.assignment)])
        marked = await store.children(znodes.DELETE_TOPICS)
        await self.deletion.forget_unknown(marked)
        found = [self.context.topic(name) for name in marked]
        topics = [topic for topic in found if topic is not None]
        for topic in topics:
            topic.is_being_deleted = True
        await self.deletion.begin(topics)

    async def isr_changed(self) -> None:
        """Leaders changed the ISR of partitions: take it up, and update all brokers.

        A leader may have taken in a follower that had just gone; it leaves the ISR again.
        """
        changed: set[TopicPartition] = set()
        for partitions in await self._take_notifications(
            znodes.ISR_CHANGES, znodes.decode_isr_change
        ):
            changed.update(partitions)
        items = self._known(changed)
        if not items:
            return
        await self.leaderships.read(items)
        gone: list[PartitionAndReplica] = []
        for topic, partition in items:
            await self.keep_pace()
            self.batch.add_update_metadata(self.context.live_brokers, topic, partition)
            if partition in topic.leaderships:
                gone += self._gone_from_isr(topic, partition)
        await self.replicas.change(gone, ReplicaStatus.OFFLINE)
        await self.partitions.bring_electable_online(items)
        self.batch.send()
        await self.reassignments.isr_changed(items)

    def _gone_from_isr(self, topic: Topic, partition: int) -> list[PartitionAndReplica]:
        """The replicas in sync that are not there."""
        return [
            replica
            for broker_id in topic.leaderships[partition].isr
            if (replica := PartitionAndReplica(topic.name, partition, broker_id))
            in self.context.replica_statuses
            and not self.context.is_online(replica)
        ]

    async def directories_changed(self) -> None:
        """Brokers lost log directories: find out which partitions are offline."""
        for broker_id in await self._take_notifications(
            znodes.LOG_DIR_EVENTS, znodes.decode_log_dir_event
        ):
            if broker_id in self.context.live_brokers:
                await self._request_all_replicas(broker_id)
                await self.deletion.directories_changed(broker_id)

    async def _request_all_replicas(self, broker_id: int) -> None:
        """Send a broker LeaderAndIsr of all its replicas: it answers which it cannot serve."""
        for replica in self.context.replicas_on({broker_id}):
            await self.keep_pace()
            topic = self.context.topic(replica.topic)
            if topic is not None and replica.partition in topic.leaderships:
                self.batch.add_leader_and_isr([broker_id], topic, replica.partition)
        self.batch.send()

    async def _take_notifications(self, path: str, decode: Callable[[bytes], NoteT]) -> list[NoteT]:
        """Read the notes under a node, oldest first, and remove them."""
        store = self.store.store
        try:
            names = await store.children(path)
        except NoNode:
            return []
        paths = [f"{path}/{name}" for name in names]
        notes = await store.get_many(paths)
        for note_path in paths:
            with suppress(NoNode):
                await self.store.multi([Delete(note_path)])
        taken = []
        for note in notes:
            try:
                if note is not None:
                    taken.append(decode(note.data))
            except CorruptNode as error:
                logger.error("a note under %s is passed over: %s", path, error)
        return taken

    async def topic_config_changed(self, name: str) -> None:
        """A topic's settings were altered: it may now be led uncleanly.

        After KafkaController.enableTopicUncleanLeaderElection. Whoever alters settings writes
        them to the store first.
        """
        topic = self.context.topic(name)
        if topic is None:
            return
        topic.config = await read_topic_config(self.store.store, name)
        if self._allows_unclean(topic):
            await self.partitions.bring_all_online([topic])
            self.batch.send()

    def _known(self, partitions: Iterable[TopicPartition]) -> list[PartitionOf]:
        items = []
        for name, partition in sorted(partitions):
            topic = self.context.topic(name)
            if topic is not None and partition in topic.assignment:
                items.append(PartitionOf(topic, partition))
        return items

    # -- what brokers answer ---------------------------------------------------------------

    def _is_still_there(self, broker: LiveBroker) -> bool:
        """Whether a broker is in the same life still; what it said in a former one is void."""
        known = self.context.live_brokers.get(broker.broker_id)
        return known is not None and known.epoch == broker.epoch

    def _led(self, broker: LiveBroker, errors: PartitionErrors) -> None:
        broker_id = broker.broker_id
        failed = []
        for topic_partition, code in errors.items():
            if code is ErrorCode.KAFKA_STORAGE_ERROR:
                failed.append(topic_partition)
            elif code not in TAKEN_UP:
                logger.error(
                    "broker %d cannot take up %s-%d: %s", broker_id, *topic_partition, code.name
                )
        # An answer that names no failure may follow one that does, and take it back.
        if failed or broker_id in self._doubted or broker_id in self.context.offline_directories:
            self._doubted.add(broker_id)
            working = {each for each, code in errors.items() if code in TAKEN_UP}
            self._later(lambda: self._directories(broker, failed, working))

    async def _directories(
        self, broker: LiveBroker, failed: Sequence[TopicPartition], working: set[TopicPartition]
    ) -> None:
        """A broker said of which partitions it can use the log directories."""
        if not self._is_still_there(broker):
            return
        broker_id = broker.broker_id
        known = self.context.offline_directories.setdefault(broker_id, set())
        recovered = known & working
        known -= recovered
        await self.brokers.directories_recovered(broker_id, recovered)
        if failed:
            await self.brokers.directories_failed(broker_id, failed)

    def _deleted(self, broker: LiveBroker, errors: PartitionErrors) -> None:
        async def answered() -> None:
            if self._is_still_there(broker):
                await self.deletion.answered(broker.broker_id, errors)

        self._later(answered)

    def _later(self, event: Event) -> None:
        """Post an event that is dropped if the controller has resigned by then."""

        async def do() -> None:
            if not self._is_over:
                await event()

        self._post(do)

    # -- shared by the verbs ----------------------------------------------------------------

    async def lead_new(self, news: Iterable[tuple[Topic, Iterable[int]]]) -> None:
        """Bring new partitions to life, some at a time: requests are served in between.

        Those of one topic are never parted: a producer that heard of half of them would send keys
        to other partitions than all others do.
        """
        step: list[PartitionOf] = []
        for topic, partitions in news:
            for partition in partitions:
                await self.keep_pace()
                step.append(PartitionOf(topic, partition))
            if len(step) >= NEW_PARTITIONS_PER_STEP:
                await self._lead_new(step)
                step = []
        if step:
            await self._lead_new(step)

    async def _lead_new(self, items: Sequence[PartitionOf]) -> None:
        """Their replicas, their leaders, then both online."""
        replicas: list[PartitionAndReplica] = []
        for topic, partition in items:
            await self.keep_pace()
            for broker_id in topic.assignment[partition]:
                replicas.append(PartitionAndReplica(topic.name, partition, broker_id))
        await self.partitions.set_status(items, PartitionStatus.NEW)
        await self.replicas.change(replicas, ReplicaStatus.NEW)
        await self.partitions.bring_online(items)
        await self.replicas.change(replicas, ReplicaStatus.ONLINE)
        self.batch.send()
