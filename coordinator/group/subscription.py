"""The topics in a consumer's subscription: the one thing a broker reads of a member's metadata.

All versions of ConsumerProtocolSubscription begin like version 0: an int16 version, then
an array of topic names. What follows is the assignors' business.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

CONSUMER_PROTOCOL_TYPE = "consumer"


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The union of the topics in some members' subscriptions; None if one is unreadable."""
    topics: set[str] = set()
    for subscription in subscriptions:
        names = _topics_of(subscription)
        if names is None:
            return None
        topics.update(names)
    return frozenset(topics)


def _topics_of(subscription: bytes) -> list[str] | None:
    try:
        version, count = struct.unpack_from(">hi", subscription)
        position = 6
        # Each name takes two bytes at least, so a count beyond that is a lie.
        if version < 0 or not 0 <= count <= (len(subscription) - position) // 2:
            return None
        names: list[str] = []
        for _ in range(count):
            (size,) = struct.unpack_from(">h", subscription, position)
            end = position + 2 + size
            if size < 0 or end > len(subscription):
                return None
            names.append(subscription[position + 2 : end].decode())
            position = end
    except (struct.error, UnicodeDecodeError):
        return None
    return names
