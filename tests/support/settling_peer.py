"""A member of a consumer group that sends heartbeats until it is told what a test waits for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from odradek.common.errors import ErrorCode
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import request_message

from .consumer_group_peer import Assignment, Beat, Peer

SETTLE_SECONDS_MAX = 120.0
RETRY_SECONDS = 0.05


class SettlingPeer(Peer):
    """A peer whose heartbeats go on; it asks from outside, so it polls."""

    def topic_id(self, topic: str) -> bytes:
        """The id of a topic, as soon as the broker knows it."""
        request = request_message(ApiKey.METADATA)
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while True:
            wanted = [request.MetadataRequestTopic(name=topic)]
            (found,) = self.ask(
                ApiKey.METADATA, 12, topics=wanted, allow_auto_topic_creation=False
            ).topics
            if found.error_code == ErrorCode.NONE:
                return bytes(found.topic_id)
            assert time.monotonic() < deadline, found
            time.sleep(RETRY_SECONDS)

    def beat_until(
        self, member_id: str, is_done: Callable[[Beat], bool], epoch: int, **told: Any
    ) -> Beat:
        """Send heartbeats, in the member's epoch, until one is answered so."""
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while True:
            beat = self.heartbeat(member_id, epoch, **told)
            assert beat.error is ErrorCode.NONE, beat
            if is_done(beat):
                return beat
            assert time.monotonic() < deadline, beat
            epoch = beat.epoch
            time.sleep(RETRY_SECONDS)

    def settle(self, member_id: str, share: Assignment, epoch: int, **told: Any) -> Beat:
        """Send heartbeats until the member is told of this share."""
        return self.beat_until(member_id, lambda beat: beat.assignment == share, epoch, **told)

    def join_until(self, member_id: str, share: Assignment, *topics: str) -> Beat:
        """Join, and take the share, which may take a while after a topic was created."""
        beat = self.join(member_id, *topics)
        assert beat.error is ErrorCode.NONE, beat
        return beat if beat.assignment == share else self.settle(member_id, share, beat.epoch)

    def outlive(self, member_id: str, epoch: int) -> None:
        """Send heartbeats until the member is the only one left."""
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while len(self.describe().members) > 1:
            beat = self.heartbeat(member_id, epoch, owned={})
            assert beat.error is ErrorCode.NONE, beat
            epoch = beat.epoch
            assert time.monotonic() < deadline, "the other one is there still"
            time.sleep(RETRY_SECONDS)
