"""What a test sees of a broker without a client."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..control.verbs import HasControl
from . import broker_state, topic_admin
from .requests import Requests
from .states import InspectedTransaction

if TYPE_CHECKING:
    from ..conditions import Condition
    from .records import ConsumerRecord


class BrokerInspection(HasControl):
    """Looking into any broker that has a control channel."""

    create_topic = topic_admin.create_topic
    topics = broker_state.topics
    topic = broker_state.topic
    groups = broker_state.groups
    group = broker_state.group
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

    def wait_until(
        self, *conditions: Condition | Callable[[Any], object], timeout: float = 30.0
    ) -> None:
        """Wait until all conditions hold at once; see `odradek.testing.conditions`.

        Args:
            conditions: of those there, or functions that are given this broker and return
                whether they hold.
            timeout: in seconds.

        Raises:
            NotReached: they do not; the text says what was seen instead.
            RuntimeError: an event loop runs this code; see `wait_until_async`.
        """
        from ..conditions import wait_for_conditions

        wait_for_conditions(self, conditions, timeout)

    async def wait_until_async(
        self, *conditions: Condition | Callable[[Any], object], timeout: float = 30.0
    ) -> None:
        """The same in a coroutine, of asyncio or trio: `await kafka.wait_until_async(...)`."""
        from ..conditions import wait_for_conditions_async

        await wait_for_conditions_async(self, conditions, timeout)
