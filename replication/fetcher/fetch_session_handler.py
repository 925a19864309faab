"""The client's half of incremental fetch sessions (KIP-227; Kafka's FetchSessionHandler).

The first fetch names every partition and opens a session; those after it name what is new,
what changed and what is no longer requested. Whatever goes wrong ends the session, and the next
fetch names everything again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ...common.errors import ErrorCode
from ...common.sentinels import INVALID_SESSION_ID, ZERO_UUID
from ...common.topic_partition import TopicPartition
from .plans import INITIAL_EPOCH, FetchAnswer, FetchPlan, ForgottenPartition, PlannedPartition

logger = logging.getLogger(__name__)

EPOCH_MAX = 2**31 - 1


class FetchSessionHandler:
    """The session with one leader.

    Args:
        leader_id: for messages.
    """

    def __init__(self, leader_id: int) -> None:
        self._leader_id = leader_id
        self.session_id = INVALID_SESSION_ID
        self.session_epoch = INITIAL_EPOCH
        self._requested: dict[TopicPartition, PlannedPartition] = {}
        """What changed last is at the end."""
        self._topic_names: dict[bytes, str] = {}

    @property
    def is_full(self) -> bool:
        """Whether the next fetch names every partition."""
        return self.session_epoch == INITIAL_EPOCH

    def build(
        self, changes: Mapping[TopicPartition, PlannedPartition | None], max_wait_ms: int = 0
    ) -> FetchPlan:
        """The next fetch.

        Args:
            changes: how partitions are requested from now on that may be requested otherwise than
                the last time; None: not at all. The leader fills its response in their order.
            max_wait_ms: how long the leader may hold it, unless it opens a session.
        """
        requested = self._requested
        to_send: dict[TopicPartition, PlannedPartition] = {}
        forgotten: list[ForgottenPartition] = []
        replaced: list[ForgottenPartition] = []
        for tp, partition in changes.items():
            before = requested.get(tp)
            if partition == before:
                continue
            if before is not None:
                del requested[tp]
            if partition is not None:
                requested[tp] = to_send[tp] = partition
                if any(partition.topic_id):
                    self._topic_names[partition.topic_id] = tp.topic
            if before is None:
                continue
            if partition is None:
                forgotten.append(ForgottenPartition(tp, before.topic_id))
            elif partition.topic_id != before.topic_id and ZERO_UUID not in (
                partition.topic_id,
                before.topic_id,
            ):
                replaced.append(ForgottenPartition(tp, before.topic_id))
        if len(self._topic_names) > len(requested):  # topics have gone
            self._topic_names = _names_in(requested)
        if self.is_full:
            to_send, forgotten, replaced, max_wait_ms = dict(requested), [], [], 0
        return FetchPlan(
            self.session_id,
            self.session_epoch,
            to_send,
            tuple(forgotten),
            tuple(replaced),
            requested,
            self._topic_names,
            max_wait_ms,
        )

    def handle_answer(self, answer: FetchAnswer) -> bool:
        """Move the session on; whether the answer's partitions may be used."""
        if answer.error:
            logger.info(
                "Broker %d refused a fetch of session %d, epoch %d: %s",
                self._leader_id,
                self.session_id,
                self.session_epoch,
                answer.error.name,
            )
            if answer.error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._begin_anew()
            else:
                self.handle_error()
            return False
        if self.is_full and not answer.partitions and answer.throttle_time_ms > 0:
            self._begin_anew()  # the broker only throttles (KIP-219)
            return False
        problem = self._problem_of(answer)
        if problem:
            logger.info("Broker %d sent an invalid answer to a fetch: %s", self._leader_id, problem)
            if self.is_full:
                self._begin_anew()
            else:
                self.handle_error()
            return False
        if answer.session_id == INVALID_SESSION_ID:
            self._begin_anew()
        elif self.is_full:
            self.session_id, self.session_epoch = answer.session_id, 1
        else:
            self.session_epoch = 1 if self.session_epoch == EPOCH_MAX else self.session_epoch + 1
        return True

    def handle_error(self) -> None:
        """Nobody knows what became of the last fetch: close the session, open another."""
        self.session_epoch = INITIAL_EPOCH

    def _begin_anew(self) -> None:
        self.session_id, self.session_epoch = INVALID_SESSION_ID, INITIAL_EPOCH

    def _problem_of(self, answer: FetchAnswer) -> str:
        """What an answer has that the session has not, or leaves out of a full one."""
        extra = [tp for tp in answer.partitions if tp not in self._requested]
        if extra:
            return f"{len(extra)} partitions that are not in the session, such as {extra[0]}"
        if answer.unknown_topic_ids:
            return f"{len(answer.unknown_topic_ids)} topic ids that are not in the session"
        if self.is_full and len(answer.partitions) != len(self._requested):
            missing = next(tp for tp in self._requested if tp not in answer.partitions)
            return (
                f"only {len(answer.partitions)} of {len(self._requested)} partitions, "
                f"{missing} not among them"
            )
        return ""


def _names_in(requested: Mapping[TopicPartition, PlannedPartition]) -> dict[bytes, str]:
    """The names of the topics that have ids."""
    names = {partition.topic_id: tp.topic for tp, partition in requested.items()}
    names.pop(ZERO_UUID, None)
    return names
