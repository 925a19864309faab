"""What share groups read: share partitions are begun, moved and deleted at their coordinators.

Before a partition of a topic is assigned the share coordinator begins its share partition, without
a start offset: the leader of the partition decides where the group starts, when it is read first.
Source: Kafka 4.3's GroupCoordinatorService (persisterInitialize, alterShareGroupOffsets,
deleteShareGroupOffsets) and GroupMetadataManager.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from operator import attrgetter

from ....common.error_texts import DEFAULT_TEXTS
from ....common.errors import ErrorCode, KafkaError
from ....runtime.long_work import take_step
from ....runtime.steps import ITEMS_AT_LEAST, Steps
from ...share.operations import (
    DeleteState,
    InitializeState,
    Operation,
    Persister,
    ReadStateSummary,
    SharePartitionKey,
    StateAnswer,
)
from ..consumer.group_write import Writer
from ..consumer.topics import TopicsImage, existing_topics
from ..runtime import GroupRuntime
from .records import ShareGroupWrite
from .share_group import SharedTopic, ShareGroup

logger = logging.getLogger(__name__)

PartitionKey = tuple[bytes, int]
PartitionAnswers = dict[PartitionKey, StateAnswer]
AnswersCallback = Callable[[PartitionAnswers], None]


class SharePartitions:
    """The share partitions of all groups that are kept here.

    Args:
        runtime: time.
        writer: stores what changes.
        topics: the cluster's topics as they are now.
        persister: brings share partitions to their coordinators.
        retry_interval_ms: what could not be begun is tried again after so long.
    """

    def __init__(
        self,
        runtime: GroupRuntime,
        writer: Writer[ShareGroup],
        topics: Callable[[], TopicsImage],
        persister: Persister,
        retry_interval_ms: int,
    ) -> None:
        self._runtime = runtime
        self._writer = writer
        self._topics = topics
        self._persister = persister
        self._retry_interval_ms = retry_interval_ms

    def assignable(self, group: ShareGroup) -> dict[bytes, list[int]]:
        """The partitions of the topics that members read, as far as they are begun."""
        image = self._topics()
        result: dict[bytes, list[int]] = {}
        found = existing_topics(image, group.subscribed_topics)
        for topic in sorted(found, key=attrgetter("name")):
            numbers = [
                number
                for number in range(topic.partition_count)
                if group.now.is_initialized(topic.topic_id, number)
            ]
            if numbers:
                result[topic.topic_id] = numbers
        return result

    # -- beginning ------------------------------------------------------------------------

    def initialize(self, write: ShareGroupWrite) -> None:
        """Have share partitions begun that members read and that are not begun yet."""
        group = write.group
        missing = self._missing(group)
        if not missing:
            return
        _put_initializing(write, missing)
        keys = [
            (topic_id, each) for topic_id, topic in missing.items() for each in topic.partitions
        ]
        group.under_way.update(keys)
        operations: list[Operation] = [
            InitializeState(SharePartitionKey(group.group_id, topic_id, number), group.now.epoch)
            for topic_id, number in keys
        ]

        def submitted() -> None:
            self._submit(operations, partial(self._initialized, group, missing))

        write.after_submit = submitted

    def _missing(self, group: ShareGroup) -> dict[bytes, SharedTopic]:
        image = self._topics()
        missing: dict[bytes, SharedTopic] = {}
        for topic in existing_topics(image, group.subscribed_topics):
            numbers = frozenset(
                number
                for number in range(topic.partition_count)
                if not group.now.is_initialized(topic.topic_id, number)
                and (topic.topic_id, number) not in group.under_way
            )
            if numbers:
                missing[topic.topic_id] = SharedTopic(topic.name, numbers)
        return missing

    def _initialized(
        self,
        group: ShareGroup,
        begun: Mapping[bytes, SharedTopic],
        answers: PartitionAnswers,
        on_complete: Callable[[ErrorCode], None] = lambda _error: None,
    ) -> None:
        """The share coordinators have answered: what they began may be assigned."""
        done: dict[bytes, SharedTopic] = {}
        for topic_id, topic in begun.items():
            numbers = frozenset(
                number for number in topic.partitions if not answers[topic_id, number].error
            )
            if numbers:
                done[topic_id] = SharedTopic(topic.name, numbers)
        failed = [key for key, answer in answers.items() if answer.error]
        if failed:
            logger.warning(
                "%d share partitions of group %s could not be initialized: %s",
                len(failed),
                group.group_id,
                answers[failed[0]].error.name,
            )
            self._runtime.schedule(self._retry_interval_ms, partial(self._try_again, group, failed))
        if done and group.state.value != "Dead":
            write = ShareGroupWrite(group)
            now = group.now
            write.put_share_partitions(
                _reduced(now.initializing, done), _united(now.initialized, done), now.deleting
            )
            self._writer.submit(write, partial(self._assignable_changed, group, done, on_complete))
        else:
            on_complete(ErrorCode.NONE)

    def _assignable_changed(
        self,
        group: ShareGroup,
        done: Mapping[bytes, SharedTopic],
        on_complete: Callable[[ErrorCode], None],
        error: ErrorCode,
    ) -> None:
        for topic_id, topic in done.items():
            group.under_way.difference_update((topic_id, each) for each in topic.partitions)
        group.needs_refresh = True
        on_complete(error)

    def _try_again(self, group: ShareGroup, failed: Iterable[PartitionKey]) -> None:
        group.under_way.difference_update(failed)
        group.needs_refresh = True

    # -- for administrators ---------------------------------------------------------------

    def describe(
        self, group_id: str, partitions: Collection[PartitionKey], respond: AnswersCallback
    ) -> None:
        """Read where a group stands in some partitions, each named once."""
        operations: list[Operation] = [
            ReadStateSummary(SharePartitionKey(group_id, *key)) for key in partitions
        ]
        self._submit(operations, respond)

    def alter(
        self,
        group: ShareGroup,
        offsets: Mapping[PartitionKey, int],
        names: Mapping[bytes, str],
        respond: AnswersCallback,
    ) -> None:
        """Have a group without members begin at some offsets.

        Args:
            offsets: by topic id and partition.
            names: of the topics, by their ids.

        Raises:
            KafkaError: NON_EMPTY_GROUP.
        """
        _require_empty(group)
        if not offsets:
            respond({})
            return
        numbers: dict[bytes, set[int]] = {}
        for topic_id, number in offsets:
            numbers.setdefault(topic_id, set()).add(number)
        begun = {
            topic_id: SharedTopic(names[topic_id], frozenset(each))
            for topic_id, each in numbers.items()
        }
        write = ShareGroupWrite(group)
        _put_initializing(write, begun)
        group.under_way.update(offsets)
        # Members count the epoch up when they come and when they go, so that this one is above
        # the one with which a leader may have loaded the state for them.
        operations: list[Operation] = [
            InitializeState(SharePartitionKey(group.group_id, *key), group.now.epoch, offset)
            for key, offset in offsets.items()
        ]

        def failed(error: ErrorCode) -> None:
            respond({key: StateAnswer(error) for key in offsets})

        def stored(error: ErrorCode) -> None:
            if error:
                group.under_way.difference_update(offsets)
                failed(error)
            else:
                self._submit(operations, initialized)

        def initialized(answers: PartitionAnswers) -> None:
            self._initialized(
                group,
                begun,
                answers,
                lambda error: failed(error) if error else respond(answers),
            )

        self._writer.submit(write, stored)

    def forget_topics(
        self, group: ShareGroup, topic_ids: Collection[bytes], respond: Callable[[ErrorCode], None]
    ) -> None:
        """Forget where a group without members stands in some topics.

        Raises:
            KafkaError: NON_EMPTY_GROUP.
        """
        _require_empty(group)
        now = group.now
        forgotten = {
            topic_id: topic
            for topic_id, topic in self._deletable(group).items()
            if topic_id in topic_ids
        }
        kept = {each: topic for each, topic in now.initialized.items() if each not in forgotten}

        def deleted(error: ErrorCode) -> None:
            if error:
                respond(error)
                return
            write = ShareGroupWrite(group)
            now = group.now
            deleting = {each: name for each, name in now.deleting.items() if each not in forgotten}
            write.put_share_partitions(now.initializing, now.initialized, deleting)
            self._writer.submit(write, respond)

        self._delete_states(
            group, now.initializing, kept, forgotten, deleted if forgotten else respond
        )

    def forget_all(self, group: ShareGroup, respond: Callable[[ErrorCode], None]) -> None:
        """Have the share coordinators forget all that a group has read, before it is deleted."""
        forgotten = _united(self._deletable(group), group.now.initializing)
        if forgotten:
            self._delete_states(group, {}, {}, forgotten, respond)
        else:
            respond(ErrorCode.NONE)

    def _deletable(self, group: ShareGroup) -> dict[bytes, SharedTopic]:
        """What the group has read, with what was to be deleted before and perhaps was not."""
        image = self._topics()
        found = (image.find(name) for name in group.now.deleting.values())
        left = {
            topic.topic_id: SharedTopic(topic.name, frozenset(range(topic.partition_count)))
            for topic in found
            if topic is not None and topic.topic_id in group.now.deleting
        }
        return _united(group.now.initialized, left)

    def _delete_states(
        self,
        group: ShareGroup,
        initializing: Mapping[bytes, SharedTopic],
        initialized: Mapping[bytes, SharedTopic],
        deleting: Mapping[bytes, SharedTopic],
        respond: Callable[[ErrorCode], None],
    ) -> None:
        """Store what is left of a group's share partitions, and have the others deleted."""
        write = ShareGroupWrite(group)
        names = {topic_id: topic.name for topic_id, topic in deleting.items()}
        write.put_share_partitions(initializing, initialized, {**group.now.deleting, **names})
        operations: list[Operation] = [
            DeleteState(SharePartitionKey(group.group_id, topic_id, number))
            for topic_id, topic in deleting.items()
            for number in topic.partitions
        ]

        def deleted(answers: PartitionAnswers) -> None:
            # Of a topic that is gone nothing is known any more, so there is nothing left to delete.
            errors = {each.error for each in answers.values()}
            errors -= {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
            respond(min(errors, default=ErrorCode.NONE))

        def stored(error: ErrorCode) -> None:
            if error:
                respond(error)
            else:
                self._submit(operations, deleted)

        self._writer.submit(write, stored)

    def _submit(self, operations: Collection[Operation], respond: AnswersCallback) -> None:
        """Have all done, of different share partitions, and respond when the last is.

        Topics may have thousands of partitions: others have a turn in between.
        """
        answers: PartitionAnswers = {}
        if not operations:
            respond(answers)
            return

        def answered(key: SharePartitionKey, answer: StateAnswer) -> None:
            answers[key.topic_id, key.partition] = answer
            if len(answers) == len(operations):
                respond(answers)

        def submit_all() -> Steps[None]:
            for operation in operations:
                self._persister.submit(operation, partial(answered, operation.key))
                self._runtime.note_appended()  # by the share coordinator, if it is here
                yield

        work = submit_all()
        # What is much does not begin here, where others' completions may be under way.
        if len(operations) > ITEMS_AT_LEAST or take_step(work) is None:
            self._runtime.schedule(0, partial(self._runtime.run_in_steps, work))


def _require_empty(group: ShareGroup) -> None:
    if group.members:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, DEFAULT_TEXTS[ErrorCode.NON_EMPTY_GROUP])


def _put_initializing(write: ShareGroupWrite, topics: Mapping[bytes, SharedTopic]) -> None:
    """The share coordinator is to begin these; it deletes none of them any more."""
    now = write.group.now
    deleting = {each: name for each, name in now.deleting.items() if each not in topics}
    write.put_share_partitions(_united(now.initializing, topics), now.initialized, deleting)


def _united(
    one: Mapping[bytes, SharedTopic], other: Mapping[bytes, SharedTopic]
) -> dict[bytes, SharedTopic]:
    result = dict(one)
    for topic_id, topic in other.items():
        former = result[topic_id].partitions if topic_id in result else frozenset()
        result[topic_id] = SharedTopic(topic.name, former | topic.partitions)
    return result


def _reduced(
    one: Mapping[bytes, SharedTopic], other: Mapping[bytes, SharedTopic]
) -> dict[bytes, SharedTopic]:
    result: dict[bytes, SharedTopic] = {}
    for topic_id, topic in one.items():
        left = topic.partitions
        if topic_id in other:
            left = left - other[topic_id].partitions
        if left:
            result[topic_id] = SharedTopic(topic.name, left)
    return result
