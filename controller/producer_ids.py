"""Producer ids, unique in the cluster: blocks of a thousand taken from the metadata store.

A broker takes a block and gives its ids out; what is left when it stops is never used
(Kafka's ZkProducerIdManager).
"""

from __future__ import annotations

from ..common.errors import ErrorCode, KafkaError
from ..metadata_store.errors import BadVersion, NodeExists, NoNode
from ..metadata_store.store import MetadataStore
from ..metadata_store.znodes import (
    PRODUCER_ID_BLOCK,
    ProducerIdBlock,
    decode_producer_id_block,
    encode_producer_id_block,
)
from ..runtime import waiting

PRODUCER_ID_BLOCK_SIZE = 1000
PRODUCER_ID_MAX = 2**63 - 1


def block_after(former: ProducerIdBlock | None, broker_id: int) -> ProducerIdBlock:
    """The next block, for a broker.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR when all ids are used up.
    """
    first = 0 if former is None else former.last + 1
    last = first + PRODUCER_ID_BLOCK_SIZE - 1
    if last > PRODUCER_ID_MAX:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids are used up.")
    return ProducerIdBlock(broker_id, first, last)


async def allocate_block(store: MetadataStore, broker_id: int) -> ProducerIdBlock:
    """Take the next block for a broker; two brokers never get the same."""
    while True:
        try:
            node = await store.get(PRODUCER_ID_BLOCK)
        except NoNode:
            block = block_after(None, broker_id)
            try:
                await store.create(PRODUCER_ID_BLOCK, encode_producer_id_block(block))
            except NodeExists:
                continue
            return block
        # Kafka makes the node without data, before anybody takes a block.
        former = decode_producer_id_block(node.data) if node.data else None
        block = block_after(former, broker_id)
        try:
            await store.set(PRODUCER_ID_BLOCK, encode_producer_id_block(block), node.version)
        except (BadVersion, NoNode):
            continue  # another broker took this one
        return block


class ProducerIdManager:
    """The producer ids that this broker gives out."""

    def __init__(self, broker_id: int, store: MetadataStore) -> None:
        self._broker_id = broker_id
        self._store = store
        self._next = 0
        self._last = -1
        self._refilling = waiting.new_lock()

    def take_nowait(self) -> int | None:
        """A fresh id; None when the block is used up and `take` must be awaited."""
        if self.is_empty:
            return None
        self._next += 1
        return self._next - 1

    @property
    def is_empty(self) -> bool:
        """Whether the block is used up."""
        return self._next > self._last

    async def refill(self) -> None:
        """Have ids at hand, from a new block if need be."""
        async with self._refilling:
            if self.is_empty:
                block = await allocate_block(self._store, self._broker_id)
                self._next, self._last = block.first, block.last

    async def take(self) -> int:
        """A fresh id, from a new block if need be."""
        while (producer_id := self.take_nowait()) is None:
            await self.refill()
        return producer_id
