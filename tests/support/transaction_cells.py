"""What each request does to a transaction in each state, asked of the brokers of a cluster.

Two topics have one partition each that a broker other than the coordinators' leads alone: while
that broker is frozen, a transaction that is ending there goes no further.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, Protocol

from odradek.common.errors import ErrorCode

from .transaction_peer import Answer, TransactionPeer

GROUP = "cells"
TIMEOUT_MS = 600_000
"""Of a transaction: all of them are open at once."""
PREPARING = ("PrepareCommit", "PrepareAbort")
STATES = ("Empty", "Ongoing", *PREPARING, "CompleteCommit", "CompleteAbort")


class Cluster(Protocol):
    """What must be there: brokers that can be frozen, and two topics that one of them leads."""

    @property
    def ports(self) -> Mapping[int, int]: ...
    def pause(self, broker_id: int) -> None: ...
    def resume(self, broker_id: int) -> None: ...


class Cell(NamedTuple):
    """What came of a request.

    Attributes:
        error: the answer's.
        epochs: by how many the coordinator's producer epoch grew.
        state: the coordinator's, when nothing is under way any more.
    """

    error: ErrorCode
    epochs: int
    state: str


class Topics(NamedTuple):
    """The topics, of one partition each, and who leads them."""

    first: str
    second: str
    leader: int


def requests(topics: Topics) -> dict[str, Callable[[TransactionPeer], ErrorCode]]:
    """The requests by name; "itself" is the producer that has the epoch, 5 EndTxn's version."""
    known = {topics.first: [0]}
    new = {topics.second: [0]}

    def one(answers: Mapping[tuple[str, int], ErrorCode]) -> ErrorCode:
        (error,) = answers.values()
        return error

    def end(committed: bool, version: int) -> Callable[[TransactionPeer], ErrorCode]:
        return lambda peer: peer.end(committed=committed, version=version, keep=False).error

    def init_again(peer: TransactionPeer) -> Answer:
        who = {"producer_id": peer.producer_id, "producer_epoch": peer.producer_epoch}
        return peer.init(keep=False, **who)

    return {
        "init": lambda peer: peer.init(keep=False).error,
        "init as itself": lambda peer: init_again(peer).error,
        "add partitions": lambda peer: one(peer.add_partitions(new)),
        "add offsets": lambda peer: peer.add_offsets(GROUP),
        "verify": lambda peer: one(peer.add_partitions_as_broker(known)),
        "commit": end(committed=True, version=4),
        "abort": end(committed=False, version=4),
        "commit 5": end(committed=True, version=5),
        "abort 5": end(committed=False, version=5),
    }


def observe(cluster: Cluster, topics: Topics, name: str) -> dict[tuple[str, str], Cell]:
    """Do each request in each state, and tell what came of it.

    Args:
        cluster: the brokers.
        topics: their leader is to be frozen, and coordinates none of these transactions.
        name: what transactional ids begin with.
    """
    ids = peers(cluster, name, but=topics.leader)
    sends = requests(topics)
    seen: dict[tuple[str, str], tuple[TransactionPeer, ErrorCode, int]] = {}

    def ask(state: str, request: str, peer: TransactionPeer) -> None:
        epoch = peer.producer_epoch
        seen[state, request] = peer, sends[request](peer), epoch

    held: dict[tuple[str, str], TransactionPeer] = {}
    for state, request in itertools.product(STATES, sends):
        peer = next(ids)
        if state != "Empty":
            assert set(peer.add_partitions({topics.first: [0]}).values()) == {ErrorCode.NONE}
        if state in PREPARING:
            held[state, request] = peer
            continue
        if state.startswith("Complete"):
            assert peer.end(committed=state == "CompleteCommit").error == ErrorCode.NONE
            peer.wait_state(state)
        ask(state, request, peer)
    cluster.pause(topics.leader)
    try:
        for (state, _), peer in held.items():
            assert peer.end(committed=state == "PrepareCommit").error == ErrorCode.NONE
        for (state, request), peer in held.items():
            assert peer.state == state
            ask(state, request, peer)
    finally:
        cluster.resume(topics.leader)
    found: dict[tuple[str, str], Cell] = {}
    for where, (peer, error, epoch) in seen.items():
        state = peer.wait_state(*(each for each in STATES if each not in PREPARING))
        found[where] = Cell(error, peer.describe().producer_epoch - epoch, state)
        peer.close()
    return found


def peers(cluster: Cluster, name: str, *, but: int) -> Iterator[TransactionPeer]:
    """Producers, started, each connected to its coordinator, which is not that broker."""
    for number in itertools.count():
        transactional_id = f"{name}-{number}"
        first = TransactionPeer(next(iter(cluster.ports.values())), transactional_id)
        coordinator = first.find_coordinator()
        first.close()
        if coordinator != but:
            yield TransactionPeer(cluster.ports[coordinator], transactional_id).start(TIMEOUT_MS)
