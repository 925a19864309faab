"""Which registrations of brokers a controller has dealt with, for the controller after it.

A broker that restarts while there is no controller is alive when the next one looks, and leads what
it led, though its log may have lost what was not on the disk yet, or all of it. Kafka's controller
takes it for the one that it was. Here the next one finds that the registration is another, and
deals with it as with a broker that restarts before its eyes: it leaves the ISRs, others lead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..common.live_broker import LiveBroker
from ..metadata_store import znodes
from ..metadata_store.store import SetData, ensure_paths
from .fenced_store import FencedStore


class KnownRegistrations:
    """The broker epochs in the store, as written by one controller after the other.

    Args:
        store: where they are.
    """

    def __init__(self, store: FencedStore) -> None:
        self._store = store
        self._written: dict[int, int] = {}

    async def restarted(
        self, registered: Mapping[int, LiveBroker], known: Collection[int]
    ) -> set[int]:
        """The brokers that restarted since a controller dealt with them, if there are others.

        Where all did, none of them has more than another, and each leads what it led.

        Args:
            registered: those that are.
            known: those that are known to have restarted.

        Raises:
            MetadataStoreError: the store is out of reach.
        """
        (node,) = await self._store.store.get_many([znodes.KNOWN_BROKER_EPOCHS])
        self._written = {}
        if node is not None and node.data:
            self._written = znodes.decode_known_broker_epochs(node.data)
        restarted = {
            broker_id
            for broker_id, broker in registered.items()
            if broker_id in known or self._written.get(broker_id, broker.epoch) != broker.epoch
        }
        return restarted if len(restarted) < len(registered) else set()

    async def dealt_with(self, live: Mapping[int, LiveBroker]) -> None:
        """What there is to do about these registrations is done.

        One that is alone needs no successor.

        Raises:
            ControllerMoved: there has been another election.
            MetadataStoreError: the store is out of reach.
        """
        epochs = {broker_id: broker.epoch for broker_id, broker in sorted(live.items())}
        if len(epochs) < 2 or epochs == self._written:
            return
        if not self._written:
            await ensure_paths(self._store.store, [znodes.KNOWN_BROKER_EPOCHS])
        data = znodes.encode_known_broker_epochs(epochs)
        await self._store.multi([SetData(znodes.KNOWN_BROKER_EPOCHS, data)])
        self._written = epochs
