"""What a share coordinator keeps of share partitions: begun, read, written and deleted.

Where nobody authorizes, odradek takes this from brokers alone; so a super user sends it.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .....protocol.api_keys import ApiKey
from .....protocol.messages import (
    DeleteShareGroupStateRequest,
    FindCoordinatorRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    WriteShareGroupStateRequest,
)
from ...scenario import scenario
from ...talk import Talk

RequestT = TypeVar("RequestT")

SHARE = 2
"""The kind of coordinator."""
UNKNOWN_ID = b"n" * 16
NO_PARTITION = 7
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


class States:
    """Requests for the states of a group's share partitions of a topic.

    Args:
        talk: the scenario's.
        partitions: of the topic.
        topic_id: the topic's; None: a new one.
    """

    def __init__(self, talk: Talk, partitions: int = 2, topic_id: bytes | None = None) -> None:
        self._talk = talk
        self.topic_id = topic_id or talk.create_topic(talk.name(), partitions)
        keys = [f"{talk.name()}:{self._shown_id}:{number}" for number in range(partitions)]
        talk.settle_quietly(FindCoordinatorRequest(key_type=SHARE, coordinator_keys=keys))
        for number in range(partitions):
            talk.settle_quietly(self.read(number))

    @property
    def _shown_id(self) -> str:
        return urlsafe_b64encode(self.topic_id).decode().rstrip("=")

    def initialize(
        self, partition: int = 0, epoch: int = 0, start: int = 0, **named: Any
    ) -> InitializeShareGroupStateRequest:
        """A request to begin a share partition."""
        make = InitializeShareGroupStateRequest
        data = make.PartitionData(partition=partition, state_epoch=epoch, start_offset=start)
        return self._of(make, make.InitializeStateData, data, **named)

    def read(
        self, partition: int = 0, leader_epoch: int = 0, **named: Any
    ) -> ReadShareGroupStateRequest:
        """A request for the state of a share partition, by the leader of its topic partition."""
        make = ReadShareGroupStateRequest
        data = make.PartitionData(partition=partition, leader_epoch=leader_epoch)
        return self._of(make, make.ReadStateData, data, **named)

    def summary(
        self, partition: int = 0, leader_epoch: int = 0, **named: Any
    ) -> ReadShareGroupStateSummaryRequest:
        """A request for where a share partition stands."""
        make = ReadShareGroupStateSummaryRequest
        data = make.PartitionData(partition=partition, leader_epoch=leader_epoch)
        return self._of(make, make.ReadStateSummaryData, data, **named)

    def delete(self, partition: int = 0, **named: Any) -> DeleteShareGroupStateRequest:
        """A request to forget a share partition."""
        make = DeleteShareGroupStateRequest
        data = make.PartitionData(partition=partition)
        return self._of(make, make.DeleteStateData, data, **named)

    def write(
        self, *batches: tuple[int, int, int, int], partition: int = 0, **fields: Any
    ) -> WriteShareGroupStateRequest:
        """A request to store batches: first and last offset, state and delivery count."""
        make = WriteShareGroupStateRequest
        named = {name: fields.pop(name) for name in ("topic_id", "group_id") if name in fields}
        data = make.PartitionData(
            partition=partition,
            state_batches=[
                make.StateBatch(
                    first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
                )
                for first, last, state, count in batches
            ],
            **fields,
        )
        return self._of(make, make.WriteStateData, data, **named)

    def _of(
        self,
        make: Callable[..., RequestT],
        topic: Any,
        partition: Any,
        topic_id: bytes | None = None,
        group_id: str | None = None,
    ) -> RequestT:
        return make(
            group_id=self._talk.name() if group_id is None else group_id,
            topics=[topic(topic_id=topic_id or self.topic_id, partitions=[partition])],
        )


NOBODYS: Sequence[dict[str, Any]] = (
    {"partition": NO_PARTITION},
    {"topic_id": UNKNOWN_ID},
    {"group_id": ""},
)
"""What names no share partition."""


@scenario(ApiKey.INITIALIZE_SHARE_GROUP_STATE, needs_authorizer=True)
def share_partition_is_begun(talk: Talk) -> None:
    states = States(talk)
    talk.ask(states.initialize(start=5), talk.version)
    talk.ask(states.read())
    talk.ask(states.initialize(epoch=1, start=7), talk.version)
    talk.ask(states.initialize(epoch=1, start=3), talk.version)
    talk.ask(states.read())
    talk.ask(states.initialize(epoch=0, start=9), talk.version)
    talk.ask(states.initialize(1, start=-1), talk.version)
    talk.ask(states.read(1))
    talk.ask(states.initialize(1, epoch=-1), talk.version)
    talk.ask(states.initialize(1, epoch=3, start=-7), talk.version)
    for named in NOBODYS:
        talk.ask(states.initialize(**named), talk.version)


@scenario(ApiKey.READ_SHARE_GROUP_STATE, needs_authorizer=True)
def state_of_a_share_partition_is_read(talk: Talk) -> None:
    states = States(talk)
    talk.ask(states.read(), talk.version)
    talk.ask(states.initialize(start=5))
    talk.ask(states.write((5, 9, ACKNOWLEDGED, 1), (12, 14, AVAILABLE, 2), start_offset=5))
    for epoch in (0, 2, 1, -1, 2):
        talk.ask(states.read(leader_epoch=epoch), talk.version)
    for named in NOBODYS:
        talk.ask(states.read(**named), talk.version)


@scenario(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, needs_authorizer=True)
def summary_of_a_share_partition_is_read(talk: Talk) -> None:
    states = States(talk)
    talk.ask(states.summary(), talk.version)
    talk.ask(states.initialize(start=5))
    talk.ask(states.summary(), talk.version)
    talk.ask(states.write((5, 9, ARCHIVED, 1), start_offset=5, delivery_complete_count=5))
    for epoch in (0, 2, 1, -1):
        talk.ask(states.summary(leader_epoch=epoch), talk.version)
    talk.ask(states.read(leader_epoch=2))
    for epoch in (1, 3):
        talk.ask(states.summary(leader_epoch=epoch), talk.version)
    for named in NOBODYS:
        talk.ask(states.summary(**named), talk.version)


@scenario(ApiKey.WRITE_SHARE_GROUP_STATE, needs_authorizer=True)
def state_of_a_share_partition_is_written(talk: Talk) -> None:
    states = States(talk)
    talk.ask(states.write((0, 4, ACKNOWLEDGED, 1)), talk.version)
    talk.ask(states.initialize(epoch=1))
    talk.ask(states.write((0, 9, AVAILABLE, 1), state_epoch=1), talk.version)
    talk.ask(states.read())
    for batches in (
        [(0, 4, ACKNOWLEDGED, 1)],
        [(7, 8, ARCHIVED, 2), (12, 13, AVAILABLE, 1)],
        [(3, 7, AVAILABLE, 3)],
        [(10, 10, ACKNOWLEDGED, 1), (11, 11, ACKNOWLEDGED, 1)],
    ):
        talk.ask(states.write(*batches, state_epoch=1, leader_epoch=1), talk.version)
        talk.ask(states.read(leader_epoch=1))
    moved = {"state_epoch": 1, "leader_epoch": 1, "start_offset": 8, "delivery_complete_count": 2}
    talk.ask(states.write(**moved), talk.version)
    talk.ask(states.read(leader_epoch=1))
    talk.ask(states.summary(leader_epoch=1))
    refused: Sequence[dict[str, Any]] = (
        {"state_epoch": 0, "leader_epoch": 1},
        {"state_epoch": 2, "leader_epoch": 1},
        {"state_epoch": 1, "leader_epoch": 0},
        {"state_epoch": 1, "leader_epoch": 2},
        {"state_epoch": -1, "leader_epoch": 2},
        {"state_epoch": 1, "leader_epoch": -1},
        *NOBODYS,
    )
    for fields in refused:
        talk.ask(states.write((9, 9, ARCHIVED, 1), **{"start_offset": 8, **fields}), talk.version)
    talk.ask(states.read(leader_epoch=2))


@scenario(ApiKey.DELETE_SHARE_GROUP_STATE, needs_authorizer=True)
def state_of_a_share_partition_is_deleted(talk: Talk) -> None:
    states = States(talk)
    talk.ask(states.delete(), talk.version)
    talk.ask(states.initialize(epoch=4, start=5))
    talk.ask(states.delete(), talk.version)
    talk.ask(states.read())
    talk.ask(states.summary())
    talk.ask(states.delete(), talk.version)
    talk.ask(states.initialize(epoch=0, start=2))
    talk.ask(states.read())
    for named in NOBODYS:
        talk.ask(states.delete(**named), talk.version)
