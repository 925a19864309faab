"""Members of a share group: they fetch, say something of what they got, come and go."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple, Protocol

from ....broker.share.record_states import AcknowledgeType, AcquireMode
from ....broker.share.share_partition import Acknowledgement
from ....broker.share.share_partition_manager import ShareFetchParams, ShareFetchResults
from ....broker.share.share_sessions import SessionKey
from ....common.errors import KafkaError
from .broker import GROUP, READ_PARTITION, SharingBroker
from .invariants import ShareInvariants

WAIT_MS = 30
FETCH_BYTES_MAX = 10_000
KINDS = (
    *[AcknowledgeType.ACCEPT] * 5,
    *[AcknowledgeType.RELEASE] * 2,
    AcknowledgeType.REJECT,
    AcknowledgeType.RENEW,
)


class SharingCluster(Protocol):
    """What members see of the cluster."""

    random: random.Random
    invariants: ShareInvariants

    def trace(self, text: str) -> None:
        """Add a line to the trace of the run."""

    def act(self, broker: SharingBroker, action: Callable[[], object]) -> None:
        """A broker does something, and what follows from it."""

    def a_leader(self) -> SharingBroker | None:
        """Somebody who thinks to lead the topic's partition."""


class HeldRecords(NamedTuple):
    """Consecutive records that a member was given, of which it has said nothing."""

    first: int
    last: int


class ShareMember:
    """One member.

    Args:
        cluster: the cluster.
        name: tells it from others.

    Attributes:
        held: what it was given in this session.
    """

    def __init__(self, cluster: SharingCluster, name: str) -> None:
        self._cluster = cluster
        self.name = name
        self.held: list[HeldRecords] = []
        self._broker: SharingBroker | None = None
        self._life = 0
        self._connection = object()
        self._is_fetching = False

    @property
    def _server(self) -> SharingBroker | None:
        """The broker of its session, unless that is another process by now."""
        broker = self._broker
        return broker if broker is not None and broker.alive and broker.life == self._life else None

    @property
    def is_served(self) -> bool:
        """Whether it has a session, as far as it knows."""
        return self._server is not None

    def act(self) -> None:
        """Do something."""
        broker = self._server
        dice = self._cluster.random.random()
        if broker is None:
            self.join()
        elif dice < 0.45:
            self.fetch(self._cluster.random.choice((1, 3, 10, 500)))
        elif dice < 0.85:
            self.say(self._cluster.random.choice(KINDS))
        elif dice < 0.95:
            self.close()
        else:
            self.die()

    def join(self) -> None:
        """Begin a session at whoever seems to lead."""
        self._forget()
        broker = self._cluster.a_leader()
        if broker is None:
            return
        key = SessionKey(GROUP, self.name)
        self._cluster.trace(f"{self.name} joins at broker {broker.broker_id}")
        self._broker, self._life = broker, broker.life
        broker.manager.sessions.open(key, self._connection, [READ_PARTITION.id])

    def fetch(self, records_max: int) -> None:
        """Fetch, unless it has not been answered yet."""
        broker = self._server
        if self._is_fetching or broker is None:
            return
        self._is_fetching = True
        mode = self._cluster.random.choice((AcquireMode.BATCH_OPTIMIZED, AcquireMode.RECORD_LIMIT))
        params = ShareFetchParams(
            GROUP, self.name, WAIT_MS, 1, FETCH_BYTES_MAX, records_max, records_max, mode
        )
        connection = self._connection

        def answered(results: ShareFetchResults) -> None:
            is_there = connection is self._connection
            for _, data in results:
                for first, last, count in data.acquired:
                    self._cluster.trace(f"{self.name} gets {first}-{last}, count {count}")
                    self._cluster.invariants.delivered(
                        self.name,
                        broker.leads_since,
                        first,
                        last,
                        count,
                        broker.clock.monotonic_ms(),
                    )
                    if is_there:
                        self.held.append(HeldRecords(first, last))
                if data.error and is_there:
                    self._cluster.trace(f"{self.name} hears {data.error.name}")
                    self._broker = None
            if is_there:
                self._is_fetching = False

        self._cluster.act(broker, lambda: broker.manager.fetch(params, [READ_PARTITION], answered))

    def say(self, kind: AcknowledgeType) -> None:
        """Say something of some records that it has, or of all of one delivery."""
        broker = self._server
        if broker is None or not self.held:
            return
        held = self.held.pop(self._cluster.random.randrange(len(self.held)))
        last = self._cluster.random.choice((held.last, held.first))
        if last < held.last:
            self.held.append(HeldRecords(last + 1, held.last))
        if kind is AcknowledgeType.RENEW:
            self.held.append(HeldRecords(held.first, last))
        leader_epoch = broker.leads_since
        self._cluster.trace(f"{self.name} says {kind.name} of {held.first}-{last}")
        own = self._cluster.invariants.said(
            self.name, held.first, last, kind, broker.clock.monotonic_ms()
        )

        def answered(refusal: KafkaError | None) -> None:
            self._cluster.trace(
                f"{kind.name} of {held.first}-{last} by {self.name}: "
                f"{'stored' if refusal is None else refusal.code.name}"
            )
            if refusal is None:
                now_ms = broker.clock.monotonic_ms()
                self._cluster.invariants.acknowledged(leader_epoch, own, kind, now_ms)

        said = [Acknowledgement(held.first, last, [int(kind)])]
        self._cluster.act(
            broker,
            lambda: broker.manager.acknowledge(GROUP, self.name, READ_PARTITION, said, answered),
        )

    def close(self) -> None:
        """End the session in good order."""
        broker = self._server
        if broker is None:
            return
        session = next(
            (each for each in broker.manager.sessions if each.key.member_id == self.name), None
        )
        self._cluster.trace(f"{self.name} closes its session")
        self._cluster.invariants.gone(self.name)
        self._forget()
        if session is not None:
            self._cluster.act(broker, lambda: broker.manager.close_session(session, lambda: None))

    def die(self) -> None:
        """End without a word; the broker sees that its connection is closed."""
        broker, connection = self._server, self._connection
        self._cluster.trace(f"{self.name} dies")
        self._forget()
        if broker is not None:
            self._cluster.invariants.gone(self.name)
            self._cluster.act(broker, lambda: broker.manager.connection_closed(connection))

    def _forget(self) -> None:
        self._broker = None
        self._connection = object()
        self._is_fetching = False
        self.held.clear()
