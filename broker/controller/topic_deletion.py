"""Deleting topics: marked first, so that a deletion once begun is always brought to its end.

After Kafka's TopicDeletionManager.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress

from ..metadata_store import znodes
from ..metadata_store.errors import NodeExists
from ..metadata_store.store import MetadataStore
from .broadcast import Broadcast
from .context import ControllerContext, Topic
from .topic_nodes import remove_topic_nodes

logger = logging.getLogger(__name__)


class TopicDeletion:
    """Takes topics out of the cluster."""

    def __init__(
        self, context: ControllerContext, store: MetadataStore, broadcast: Broadcast
    ) -> None:
        self._context = context
        self._store = store
        self._broadcast = broadcast

    async def mark(self, topic: Topic) -> None:
        """From here on neither a crash nor a new controller stops the deletion."""
        with suppress(NodeExists):
            await self._store.create(znodes.delete_topic_path(topic.name))
        topic.is_being_deleted = True

    async def delete(self, topics: Sequence[Topic]) -> list[Topic]:
        """Delete topics that are marked.

        Returns:
            Those of which some replica could not delete its log; they stay marked.
        """
        if not topics:
            return []
        failed = await self._broadcast.tell_deletion(topics)
        left: list[Topic] = []
        for topic in topics:
            if topic.name in failed:
                left.append(topic)
                continue
            await remove_topic_nodes(self._store, topic.name)
            self._context.remove_topic(topic)
            logger.info("deleted topic %s", topic.name)
        return left

    async def finish(self) -> None:
        """Go on with the deletions that a former controller left."""
        for name in await self._store.children(znodes.DELETE_TOPICS):
            if not self._context.has_name(name):
                await remove_topic_nodes(self._store, name)
        await self.delete([topic for topic in self._context.topics() if topic.is_being_deleted])
