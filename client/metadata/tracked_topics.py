"""The topics whose metadata a client keeps: all there are, or those it uses.

A topic that nobody asks for any more is forgotten after a while, so that a producer which
writes to ever new topics does not ask for all of them for ever (KIP-526; Kafka's
`ProducerMetadata`).
"""

from __future__ import annotations

import math


class TrackedTopics:
    """Which topics to ask for, and which of an answer to keep.

    Args:
        idle_ms: a topic not used during this time is dropped at the next update
            (`metadata.max.idle.ms`); -1: never.
        all_topics: keep every topic of the cluster, requested or not.
    """

    def __init__(self, idle_ms: int = -1, *, all_topics: bool = False) -> None:
        self.all_topics = all_topics
        self._idle_ms: float = math.inf if idle_ms < 0 else idle_ms
        self._expiry_ms: dict[str, float] = {}
        self._new: dict[str, None] = {}

    def add(self, topic: str, now_ms: int) -> bool:
        """Keep a topic, or keep it for longer; whether nothing is known of it yet."""
        is_new = topic not in self._expiry_ms
        self._expiry_ms[topic] = now_ms + self._idle_ms
        if is_new and not self.all_topics:
            self._new[topic] = None
        return is_new

    def names(self) -> list[str] | None:
        """What a full update asks for; None: all that there are."""
        return None if self.all_topics else list(self._expiry_ms)

    def new_names(self) -> list[str]:
        """What a partial update asks for: topics that no answer was about yet."""
        return list(self._new)

    def is_new(self, topic: str) -> bool:
        """Whether the topic is tracked and no answer was about it yet."""
        return topic in self._new

    def note_answered(self, topic: str) -> None:
        """An answer was about this topic, be it an error: full updates take care of it now."""
        self._new.pop(topic, None)

    def retain(self, topic: str, now_ms: int) -> bool:
        """Whether the topic is to be kept; one that is idle too long is dropped here."""
        if self.all_topics:
            return True
        expiry_ms = self._expiry_ms.get(topic)
        if expiry_ms is None:
            return False
        if expiry_ms > now_ms or topic in self._new:
            return True
        del self._expiry_ms[topic]
        return False
