"""What a test sees of a broker without a client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..control.verbs import HasControl
from . import broker_state, topic_admin
from .requests import Requests
from .states import InspectedTransaction
from .waitable import Waitable

if TYPE_CHECKING:
    from .records import ConsumerRecord


class BrokerInspection(HasControl, Waitable):
    """Looking into any broker that has a control channel."""

    create_topic = topic_admin.create_topic
    topics = broker_state.topics
    topic = broker_state.topic
    groups = broker_state.groups
    group = broker_state.group
    share_partitions = broker_state.share_partitions
    client_metrics = broker_state.client_metrics
    transactions = broker_state.transactions
    producers = broker_state.producers
    reset = topic_admin.reset
    snapshot = topic_admin.snapshot
    restore = topic_admin.restore

    def delete_topic(self, *names: str) -> None:
        """Delete topics; returns when they and their logs are gone."""
        topic_admin.delete_topics.on(self.control())(list(names))

    def read(
        self,
        topic: str,
        partition: int | None = None,
        *,
        offset: int = 0,
        committed_only: bool = False,
    ) -> list[ConsumerRecord]:
        """The records of a topic that consumers could read now.

        Args:
            partition: only this one; None: all, one after the other.
            offset: where to begin, in each.
            committed_only: leave out what was aborted, and all from the first open transaction
                on, as consumers of committed records do.
        """
        from .records import read_partition

        control = self.control()
        numbers = [partition]
        if partition is None:
            numbers = [each.partition for each in self.topic(topic).partitions]
        return [
            record
            for number in numbers
            for record in read_partition(
                control, topic, number or 0, offset=offset, committed_only=committed_only
            )
        ]

    def transaction(self, transactional_id: str) -> InspectedTransaction | None:
        """A transactional id as it is now; None: the broker does not know it."""
        found = [each for each in self.transactions() if each.transactional_id == transactional_id]
        return found[0] if found else None

    @property
    def requests(self) -> Requests:
        """The requests it was sent: `broker.requests.of("Produce").count()`."""
        return Requests(self.control)
