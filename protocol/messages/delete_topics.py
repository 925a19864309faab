"""DeleteTopics: remove topics, by name or id."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int16, int32, string, uuid


class DeleteTopicsRequest(Message, api_key=20, versions="0-6", flexible="4+"):
    topics: list[DeleteTopicState] = array("6+")
    topic_names: list[str] = array("0-5", of=string, ignorable=True)
    timeout_ms: int = int32()

    class DeleteTopicState(Struct):
        name: str | None = string("6+", nullable="6+", default=None)
        topic_id: bytes = uuid("6+")


class DeleteTopicsResponse(Message, api_key=20, versions="0-6", flexible="4+"):
    throttle_time_ms: int = int32("1+", ignorable=True)
    responses: list[DeletableTopicResult] = array()

    class DeletableTopicResult(Struct):
        name: str | None = string(nullable="6+")
        topic_id: bytes = uuid("6+", ignorable=True)
        error_code: int = int16()
        error_message: str | None = string("5+", nullable="5+", default=None, ignorable=True)
