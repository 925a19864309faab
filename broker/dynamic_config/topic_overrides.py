"""The settings of the topics that LeaderAndIsr names, which it does not carry itself.

Kafka's brokers read them from the store as well (ZkConfigRepository), and follow their changes
through `/config/changes` from then on.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from ...metadata_store import znodes
from ...metadata_store.store import MetadataStore
from ...runtime.long_work import Pace

logger = logging.getLogger(__name__)


async def read_topic_overrides(
    store: MetadataStore, topics: Collection[str]
) -> dict[str, Mapping[str, str]]:
    """The overrides of topics, none for one that has no node or a damaged one.

    Raises:
        MetadataStoreError: the store does not answer.
    """
    names = sorted(topics)
    nodes = await store.get_many([znodes.topic_config_path(name) for name in names])
    overrides: dict[str, Mapping[str, str]] = {}
    pace = Pace()
    for name, node in zip(names, nodes, strict=True):
        await pace.keep()
        try:
            overrides[name] = {} if node is None else znodes.decode_config(node.data)
        except znodes.CorruptNode as error:
            logger.error("the settings of topic %s: %s", name, error)
            overrides[name] = {}
    return overrides
