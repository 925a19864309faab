"""A broker's entry in the cluster: cluster id, registration, and the race for controller."""

from __future__ import annotations

from contextlib import suppress

from ..common.live_broker import LiveBroker
from ..common.named_tuple import NamedTuple
from ..metadata_store import znodes
from ..metadata_store.errors import BadVersion, NodeExists, NoNode
from ..metadata_store.store import Check, Create, MetadataStore, SetData, ensure_paths
from ..runtime import waiting
from ..runtime.clock import Clock

FORMER_SESSION_GRACE_MS = 2_000
"""How much later than promised a store may end the session of a holder that crashed."""

REGISTER_RETRY_MS = 200
"""How long to wait before trying to register again."""


class Election(NamedTuple):
    """An election that was won: the epoch, and the version of the node that holds it."""

    epoch: int
    epoch_version: int


class BrokerIdTaken(Exception):
    """Another live broker has registered under the same id."""

    def __init__(self, broker_id: int) -> None:
        super().__init__(f"another broker of this cluster has broker.id={broker_id}: change one")
        self.broker_id = broker_id


async def get_or_create_cluster_id(store: MetadataStore, proposed: str) -> str:
    """The cluster's id; the first broker's proposal becomes it."""
    while True:
        try:
            return znodes.decode_cluster_id((await store.get(znodes.CLUSTER_ID)).data)
        except NoNode:
            pass
        await ensure_paths(store, [znodes.CLUSTER_ID.rpartition("/")[0]])
        try:
            await store.create(znodes.CLUSTER_ID, znodes.encode_cluster_id(proposed))
        except NodeExists:
            continue  # another broker was first: its proposal counts
        return proposed


async def get_or_create_secret(store: MetadataStore, proposed: bytes) -> bytes:
    """By which the cluster's brokers know each other; the first broker's proposal becomes it.

    A crash of power that takes it from a file takes all who know it, too: the next makes another.
    """
    while True:
        try:
            return (await store.get(znodes.INTER_BROKER_SECRET)).data
        except NoNode:
            pass
        await ensure_paths(store, [znodes.INTER_BROKER_SECRET.rpartition("/")[0]])
        with suppress(NodeExists):  # another broker was first: its proposal counts
            await store.multi([Create(znodes.INTER_BROKER_SECRET, proposed, unsynced=True)])
            return proposed


async def read_controller_epoch(store: MetadataStore, expected: int) -> int:
    """The epoch of the latest election.

    Args:
        expected: it should be this one or a later one; where it is not, it is made sure that the
            server of the store that was read has not fallen behind the others.
    """
    while True:
        try:
            node = await store.get(znodes.CONTROLLER_EPOCH)
        except NoNode:
            return 0
        epoch = int(node.data)
        if epoch >= expected:
            return epoch
        try:
            # A write comes after all that were before it, on each server.
            await store.multi([Check(znodes.CONTROLLER_EPOCH, node.version)])
        except BadVersion:
            continue
        return epoch


async def register_broker(store: MetadataStore, broker: LiveBroker, now_ms: int) -> LiveBroker:
    """Register under `/brokers/ids` for as long as the session lasts.

    Returns:
        The broker with the epoch of its registration.

    Raises:
        BrokerIdTaken: a live broker has the id.
    """
    path = znodes.broker_path(broker.broker_id)
    try:
        await store.create(path, znodes.encode_broker(broker, now_ms), ephemeral=True)
    except NodeExists:
        raise BrokerIdTaken(broker.broker_id) from None
    return broker._replace(epoch=(await store.get(path)).creation_id)


async def register_when_free(store: MetadataStore, broker: LiveBroker, clock: Clock) -> LiveBroker:
    """Register, once the registration of a former life of this broker has gone.

    Raises:
        BrokerIdTaken: it stays: another broker has this one's id.
    """
    lasts_ms = store.former_session_lasts_ms
    deadline_ms = clock.monotonic_ms() + lasts_ms + FORMER_SESSION_GRACE_MS
    while True:
        try:
            return await register_broker(store, broker, clock.now_ms())
        except BrokerIdTaken:
            if lasts_ms == 0 or clock.monotonic_ms() > deadline_ms:
                raise
        await waiting.sleep(REGISTER_RETRY_MS / 1000)


async def read_live_brokers(store: MetadataStore) -> dict[int, LiveBroker]:
    """All registered brokers by id."""
    ids = [int(name) for name in await store.children(znodes.BROKER_IDS)]
    nodes = await store.get_many([znodes.broker_path(broker_id) for broker_id in ids])
    return {
        broker_id: znodes.decode_broker(node.data, broker_id, node.creation_id)
        for broker_id, node in sorted(zip(ids, nodes, strict=True))
        if node is not None
    }


async def try_to_become_controller(
    store: MetadataStore, broker_id: int, now_ms: int
) -> Election | None:
    """Take the controller's place, if it is free.

    After KafkaZkClient.registerControllerAndIncrementEpoch.

    Returns:
        The election that was won; None when another broker is controller.
    """
    try:
        await store.get(znodes.CONTROLLER)
    except NoNode:
        pass
    else:
        return None
    (node,) = await store.get_many([znodes.CONTROLLER_EPOCH])
    first = [Create(znodes.CONTROLLER_EPOCH, b"0")] if node is None else []
    epoch, version = (0, 0) if node is None else (int(node.data), node.version)
    epoch += 1
    try:
        *_, epoch_version = await store.multi(
            [
                *first,
                Create(
                    znodes.CONTROLLER,
                    znodes.encode_controller(broker_id, now_ms),
                    ephemeral=True,
                ),
                SetData(znodes.CONTROLLER_EPOCH, str(epoch).encode(), version),
            ]
        )
    except (NodeExists, BadVersion):
        if first:  # another broker may have made the epoch, and not be controller
            return await try_to_become_controller(store, broker_id, now_ms)
        return None
    assert isinstance(epoch_version, int)
    return Election(epoch, epoch_version)


class Standing(NamedTuple):
    """How an election came out for a broker: it still is, or has become, or is not controller."""

    is_controller: bool
    election: Election | None = None
    """That it has just won."""


async def stand_for_election(
    store: MetadataStore, broker_id: int, *, is_controller: bool, now_ms: int
) -> Standing:
    """Take the controller's place if it is free.

    Args:
        is_controller: whether the broker acts as the controller now.
    """
    try:
        node = await store.get(znodes.CONTROLLER)
    except NoNode:
        pass
    else:
        if znodes.decode_controller(node.data) != broker_id:
            return Standing(False)
        if is_controller:
            return Standing(True)
        # Won in a former session, or by a write whose answer was lost: begin anew.
        with suppress(NoNode, BadVersion):
            await store.delete(znodes.CONTROLLER, node.version)
    election = await try_to_become_controller(store, broker_id, now_ms)
    return Standing(election is not None, election)
