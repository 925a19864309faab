"""Fetches without a session that are treated as those of one (KIP-227).

Some clients (librdkafka) name all their partitions with every Fetch, from another one on each
time, and most of them have nothing new. Such a connection has a session without a number: what
asks for a partition in the bytes of the last time changes nothing, other bytes change what is
requested, and a partition that is not named is forgotten. The answers are whole ones. What
asks for an idle partition is looked up and not decoded, and so is the part of the answer.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import compress, repeat
from operator import is_
from typing import Any, NamedTuple

from ....common.errors import ErrorCode
from ....common.sentinels import FINAL_EPOCH, INVALID_SESSION_ID, ISOLATION_LEVELS
from ....common.topic_partition import TopicPartition
from ....protocol import messages
from ....protocol.api_keys import ApiKey
from ....protocol.codec.kept_elements import EncodedElements, element_decoders, element_encoders
from ....protocol.codec.message import Decoder, Encoder
from ....protocol.errors import ProtocolError
from ....protocol.messages import request_message, response_message
from ....replication.purgatory.idle_partition_cache import (
    IdlePartition,
    IdlePartitionCache,
    idle_partition,
)
from ....replication.read.fetch import (
    FetchParams,
    FetchPartition,
    FetchPartitionData,
    FetchResults,
)
from ....runtime.long_work import Steps, map_in_steps
from ....storage.io.file_slice import FileSlice
from ..context import HandlerContext
from ..fetch_rules import (
    FIRST_FLEXIBLE_VERSION,
    FIRST_VERSION_WITH_SESSIONS,
    FIRST_VERSION_WITH_TOPIC_IDS,
    explain,
    partition_data,
)
from ..fetch_sessions import PartitionKey, Terms, key_of
from ..requests import Request
from ..route import Route

TopicKey = str | bytes
NO_ANSWERS: dict[bytes, bytes] = {}

Fresh = tuple[TopicKey, bytes, bytes, FetchPartition, FetchPartitionData]
"""A partition that was just found without records: its topic, what asks for it, what it answers,
and both of these again as they were read."""


class FetchCodecs(NamedTuple):
    """One version of Fetch whose partitions stay encoded."""

    decode: Decoder
    decode_partition: Decoder
    encode: Encoder
    encode_partition: Encoder


@functools.cache
def codecs_of(version: int) -> FetchCodecs:
    """The codecs of a version, made once."""
    request, response = request_message(ApiKey.FETCH), response_message(ApiKey.FETCH)
    return FetchCodecs(
        *element_decoders(request, version, messages.FetchRequest.FetchPartition),
        *element_encoders(response, version, messages.FetchResponse.PartitionData),
    )


class ImplicitFetchSession(IdlePartitionCache):
    """What a connection's fetches without a session have in common.

    Args:
        context: the broker's.
        route: of the fetches.

    Attributes:
        key: the route's.
        takes_long: whether the last long fetch named partitions that there are, and each once.
        body: the fetch at hand, with its partitions still encoded, up to its answer; else None.
    """

    __slots__ = (
        "_active",
        "_answers",
        "_by_id",
        "_codecs",
        "_context",
        "_idle_as",
        "_indexes",
        "_is_flexible",
        "body",
        "key",
        "takes_long",
    )

    def __init__(self, context: HandlerContext, route: Route) -> None:
        super().__init__(context.replica_manager.delayed_fetch)
        version = route.api_version
        self.key = route.key
        self.takes_long = False
        self.body: messages.FetchRequest | None = None
        self._context = context
        self._codecs = codecs_of(version)
        self._by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
        self._is_flexible = version >= FIRST_FLEXIBLE_VERSION
        self._answers: dict[TopicKey, dict[bytes, bytes]] = {}
        """Topic to what asks for its idle partitions, and what they answer."""
        self._idle_as: dict[PartitionKey, tuple[bytes, TopicPartition]] = {}
        """What asks for each of them, and how it is known while it is left alone."""
        self._active: dict[TopicKey, set[bytes]] = {}
        """Topic to what asks for its other partitions in the fetch at hand."""
        self._indexes: dict[bytes, int] = {}
        """What asks for the others in the fetch at hand, and the partition's number."""

    # -- the request ------------------------------------------------------------------

    def decode(self, frame: memoryview, position: int) -> messages.FetchRequest | None:
        """A fetch's body, with its partitions encoded; None if it is none that this is made for.

        Args:
            frame: all of the request.
            position: where its body begins.
        """
        try:
            body: messages.FetchRequest = self._codecs.decode(frame, position)[0]
        except ProtocolError:
            return None
        if not names_all(body) or not self._note_entries(body):
            return None
        self.body = body
        return body

    def _note_entries(self, body: messages.FetchRequest) -> bool:
        """Tell what is known from what is not, and forget what is not named.

        Returns False if something stands there twice or has tagged fields, and for a single
        partition, for which there are memos.
        """
        requested: dict[TopicKey, set[bytes]] = {}
        self._active, self._indexes = {}, {}
        previous: TopicKey | None = None
        total = idle = 0
        for part in body.topics:
            topic = part.topic_id if self._by_id else part.topic
            encoded: Any = part.partitions
            entries: set[bytes] = set(encoded)
            count = len(encoded)
            total += count
            if topic in requested:  # others came in between
                before = requested[topic]
                count += len(before)
                idle -= len(before) - len(self._active[topic])
                entries |= before
            if topic == previous or not 0 < len(entries) == count:
                return False
            previous = topic
            requested[topic] = entries
            active = entries.difference(self._answers.get(topic, NO_ANSWERS))
            self._active[topic] = active
            if active and self._is_flexible and any(entry[-1] for entry in active):
                return False
            idle += count - len(active)
        if idle < len(self._idle_as):
            for topic, known in list(self._answers.items()):
                self._forget(topic, known.keys() - requested.get(topic, ()))
        return total > 1

    def _forget(self, topic: TopicKey, entries: set[bytes]) -> None:
        for entry in entries:
            index = self._codecs.decode_partition(entry, 0)[0].partition
            self.mark_active(self._idle_as[topic, index][1])

    def resolve(self, request: Request[object], terms: Terms) -> list[FetchPartition] | None:
        """The partitions that are not idle, in the order of the request; None where something
        is wrong with one, or it is requested in two ways, of which only the last counts.

        Args:
            request: whose body was decoded last.
            terms: what holds for the whole fetch and decides what its reader sees.
        """
        assert self.body is not None
        cache = self._context.metadata_cache
        self.invalidate_unless(cache.snapshot, terms)
        resolved: list[FetchPartition] = []
        for part in self.body.topics:
            topic = part.topic_id if self._by_id else part.topic
            name = cache.topic_name(topic) if isinstance(topic, bytes) else topic
            if name is None or not self._context.authorize(request, "READ", "TOPIC", name):
                return None
            entries: Any = part.partitions
            active = self._active[topic]
            for entry in filter(active.__contains__, entries) if active else ():
                partition = self._codecs.decode_partition(entry, 0)[0]
                index = self._indexes[entry] = partition.partition
                if not cache.contains_partition(name, index):
                    return None
                resolved.append(
                    FetchPartition(
                        TopicPartition(name, index),
                        part.topic_id if self._by_id else b"",
                        partition.fetch_offset,
                        partition.partition_max_bytes,
                        partition.current_leader_epoch,
                        partition.last_fetched_epoch,
                        partition.log_start_offset,
                    )
                )
        named = {each.topic_partition for each in resolved}
        if len(named) < len(resolved) or any(map(self.idle.__contains__, named)):
            return None
        return resolved

    def decode_partitions(self) -> Steps[None]:
        """Have the body as it is decoded in general; the session has no part in it any more.

        It yields after each partition.
        """
        assert self.body is not None
        body, self.body = self.body, None
        self.takes_long = False
        decode = self._codecs.decode_partition
        for part in body.topics:
            entries: Any = part.partitions
            part.partitions = yield from map_in_steps(lambda entry: decode(entry, 0)[0], entries)

    # -- idle partitions --------------------------------------------------------------

    def on_active(self, idle: IdlePartition) -> None:
        """A partition is idle no more."""
        key = topic, index = key_of(idle.requested)
        entry, _ = self._idle_as.pop(key)
        self._indexes[entry] = index
        self._active.setdefault(topic, set()).add(entry)
        answers = self._answers[topic]
        del answers[entry]
        if not answers:
            del self._answers[topic]

    def in_order(self, partitions: Sequence[FetchPartition]) -> Sequence[FetchPartition]:
        """Partitions in the order of the request."""
        assert self.body is not None, "only a fetch that waits has its partitions ordered"
        ordered: list[FetchPartition] = []
        by_key = {key_of(each): each for each in partitions}
        for part in self.body.topics:
            entries: Any = part.partitions
            topic = part.topic_id if self._by_id else part.topic
            keys = ((topic, self._indexes.get(entry, -1)) for entry in entries)
            ordered += [by_key[key] for key in keys if key in by_key]
        return ordered

    # -- the answer -------------------------------------------------------------------

    def answer(self, request: Request[object], params: FetchParams, results: FetchResults) -> None:
        """Answer the fetch at hand.

        Args:
            request: whose body it is.
            params: of the whole fetch.
            results: of the partitions that are not idle.
        """
        assert self.body is not None
        found = {key_of(result[0]): result for result in results}
        response = messages.FetchResponse
        answer = response()
        fresh: list[Fresh] = []
        refused: list[ErrorCode] = []
        count = 1  # of error codes: the whole answer has one, too
        for part in self.body.topics:
            topic = part.topic_id if self._by_id else part.topic
            entries: Any = part.partitions
            known: list[Any] = list(map(self._answers.get(topic, NO_ANSWERS).get, entries))
            buffers: list[Any] = []
            begin = 0
            active = map(is_, known, repeat(None)) if self._active[topic] else ()
            for at in compress(range(len(known)), active):
                buffers.append(known[begin:at])
                begin = at + 1
                requested, data = found[topic, self._indexes[entries[at]]]
                value = partition_data(requested.topic_partition.partition, data)
                if data.error:
                    explain(self._context, request, answer, value, topic)
                    refused.append(data.error)
                encoded = self._codecs.encode_partition(value)
                if len(encoded) == 1:
                    fresh.append((topic, entries[at], encoded[0], requested, data))
                buffers += encoded
            buffers.append(known[begin:] if begin else known)
            count += len(known)
            partitions: Any = EncodedElements(len(known), buffers)
            answer.responses.append(
                response.FetchableTopicResponse(
                    topic=part.topic, topic_id=part.topic_id, partitions=partitions
                )
            )
        self.body = None
        if request.connection.dispatcher.uses_memos:
            errors = request.route.errors
            errors.none_count += count - len(refused)
            for error in refused:
                errors.count_one(error)
            request.answer_counted(answer, self._codecs.encode)
        else:  # a hook was set while this waited, which has to see all partitions
            whole = b"".join(
                part.read() if isinstance(part, FileSlice) else part
                for part in self._codecs.encode(answer)
            )
            request.answer(response.decoder(request.api_version)(whole, 0)[0])
        self._note_idle(params, fresh)

    def _note_idle(self, params: FetchParams, fresh: list[Fresh]) -> None:
        hosted = self._context.replica_manager.partitions
        for topic, entry, encoded, requested, data in fresh:
            idle = idle_partition(hosted, params, requested, data)
            if idle is not None and not self.is_closed:
                self._answers.setdefault(topic, {})[entry] = encoded
                self._idle_as[key_of(requested)] = entry, requested.topic_partition
                self.add(idle)


def names_all(body: messages.FetchRequest) -> bool:
    """Whether a fetch is a consumer's without a session, and with nothing wrong to explain."""
    return (
        body.session_epoch == FINAL_EPOCH
        and body.session_id == INVALID_SESSION_ID
        and max(body.replica_id, body.replica_state.replica_id) < 0
        and body.isolation_level in ISOLATION_LEVELS
    )


def decode_whole(request: Request[messages.FetchRequest]) -> Steps[None]:
    """Have a body decoded whose connection's session has no part in it, if it is not."""
    session = request.connection.implicit_session
    if isinstance(session, ImplicitFetchSession) and session.body is request.body:
        yield from session.decode_partitions()


def is_encoded(body: messages.FetchRequest) -> bool:
    """Whether a body's partitions are still as they were sent."""
    return bool(body.topics) and any(
        isinstance(each, bytes) for each in body.topics[0].partitions[:1]
    )


def resolve_implicitly(
    context: HandlerContext, request: Request[messages.FetchRequest], terms: Terms
) -> tuple[ImplicitFetchSession | None, list[FetchPartition]]:
    """The session that a request without one was decoded by, and its partitions to be read.

    It is None where the handler has something to explain, for which it needs all of the body
    (`decode_partitions`); for the next such request the connection has a session then.
    """
    connection, body = request.connection, request.body
    session = connection.implicit_session
    if isinstance(session, ImplicitFetchSession) and session.body is body:
        partitions = session.resolve(request, terms)
        if partitions is not None:
            return session, partitions
    elif (
        (session is None or session.key != request.route.key)
        and request.api_version >= FIRST_VERSION_WITH_SESSIONS
        and names_all(body)
        and sum(len(topic.partitions) for topic in body.topics) > 1
    ):
        if session is not None:
            session.close()
        connection.implicit_session = ImplicitFetchSession(context, request.route)
    return None, []
