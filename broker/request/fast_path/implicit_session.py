"""Fetches without a session that are treated as those of one (KIP-227).

Some clients (librdkafka) name all their partitions with every Fetch, from another one on each
time, and most of them have nothing new. Such a connection has a session without a number: what
asks for a partition in the bytes of the last time changes nothing, other bytes change what is
requested, and a partition that is not named is forgotten. The answers are whole ones, though:
a partition that the session has nothing to say of is answered in the bytes of the last time. So
this stands around the handler, which sees a session, as a codec that decodes and encodes only
what differs.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

from ....common.sentinels import FINAL_EPOCH, INVALID_SESSION_ID, ISOLATION_LEVELS
from ....protocol import messages
from ....protocol.api_keys import ApiKey
from ....protocol.codec.kept_elements import EncodedElements, element_decoders, element_encoders
from ....protocol.codec.message import Decoder, Encoder
from ....protocol.errors import ProtocolError
from ....protocol.messages import request_message, response_message
from ....replication.read.fetch import FetchPartition
from ....replication.read.reading import PARTITIONS_AT_ONCE
from ....runtime.steps import Steps, map_in_steps, run_at_once
from ....storage.io.file_slice import FileSlice
from ..context import HandlerContext
from ..fetch_rules import (
    FIRST_FLEXIBLE_VERSION,
    FIRST_VERSION_WITH_SESSIONS,
    FIRST_VERSION_WITH_TOPIC_IDS,
)
from ..fetch_sessions import (
    FetchSession,
    PartitionKey,
    RequestedPartition,
    key_of,
    requested_partition,
)
from ..requests import Request
from ..route import FramePart, Route

TopicKey = str | bytes


@functools.cache
def codecs_of(version: int) -> tuple[Decoder, Decoder, Encoder, Encoder]:
    """Those of a request and its partitions, and of an answer and its partitions; made once."""
    request, response = request_message(ApiKey.FETCH), response_message(ApiKey.FETCH)
    return (
        *element_decoders(request, version, messages.FetchRequest.FetchPartition),
        *element_encoders(response, version, messages.FetchResponse.PartitionData),
    )


class EncodedPartition:
    """A partition of the session.

    Attributes:
        key: what the requests call it.
        request: the bytes that ask for it.
        answer: the buffers that it was last answered with.
    """

    __slots__ = ("answer", "key", "request")

    def __init__(self, key: PartitionKey, request: bytes) -> None:
        self.key = key
        self.request = request
        self.answer: Sequence[FramePart] = ()


answer_of = attrgetter("answer")

Changes = list[tuple[TopicKey, set[bytes], set[bytes], set[bytes]]]
"""By topic, the partitions that a request names, those of them that the last one did not, and what
that named besides, all as bytes."""


class ImplicitFetchSession(FetchSession):
    """What a connection's fetches without a session have in common.

    Args:
        context: the broker's.
        route: of the fetches.

    Attributes:
        key: the route's.
        body: the fetch that was decoded last; its partitions are `EncodedPartition`.
    """

    __slots__ = (
        "_by_bytes",
        "_by_key",
        "_decode",
        "_decode_partition",
        "_encode",
        "_encode_partition",
        "_is_flexible",
        "_reserved",
        "_sessions",
        "body",
        "key",
    )

    def __init__(self, context: HandlerContext, route: Route) -> None:
        version = route.api_version
        super().__init__(
            INVALID_SESSION_ID,
            version >= FIRST_VERSION_WITH_TOPIC_IDS,
            context.clock.monotonic_ms(),
            context.replica_manager.delayed_fetch,
        )
        self.key = route.key
        self._sessions = context.fetch_sessions
        self._reserved = 0
        self.body: messages.FetchRequest | None = None
        codecs = codecs_of(version)
        self._decode, self._decode_partition, self._encode, self._encode_partition = codecs
        self._is_flexible = version >= FIRST_FLEXIBLE_VERSION
        self._by_key: dict[PartitionKey, EncodedPartition] = {}
        self._by_bytes: dict[TopicKey, dict[bytes, EncodedPartition]] = {}

    def decode(
        self, frame: memoryview, position: int
    ) -> messages.FetchRequest | Steps[messages.FetchRequest | None] | None:
        """A fetch's body, whose partitions the session takes over; None if it is not for it.

        Args:
            frame: all of the request.
            position: where its body begins.

        Returns:
            work that returns the same where much has changed; it does not need the frame.
        """
        try:
            body: messages.FetchRequest = self._decode(frame, position)[0]
        except ProtocolError:
            return None
        requested: dict[TopicKey, list[bytes]] = {}
        for topic in body.topics:
            encoded: Any = topic.partitions
            requested.setdefault(self._key_of(topic), []).extend(encoded)
        if not names_all(body):
            return None
        count, changed, changes = 0, 0, []
        for key, entries in requested.items():
            known = self._by_bytes.setdefault(key, {})
            named, size = set(entries), len(entries)
            if len(named) < size:
                return None
            new, gone = named.difference(known), known.keys() - named
            count += size
            if new or gone:
                changed += len(new | gone)
                changes.append((key, named, new, gone))
        for key in self._by_bytes.keys() - requested.keys():
            gone = set(self._by_bytes[key])
            changed += len(gone)
            changes.append((key, set(), set(), gone))
        if count < 2:  # there are memos for a single partition
            return None
        if not changed:
            return self._known(body)
        if not self._reserve(count):
            return None
        work = self._take_over(body, changes)
        return work if changed > PARTITIONS_AT_ONCE else run_at_once(work)

    def _reserve(self, partitions: int) -> bool:
        """Have room for so many partitions; False: others have it."""
        more = partitions - self._reserved
        if more > 0 and not self._sessions.has_implicit_room(more):
            return False
        self._sessions.implicit_partitions += more
        self._reserved = partitions
        return True

    def close(self) -> None:
        """The connection is closed, or its fetches are of another kind now."""
        self._sessions.implicit_partitions -= self._reserved
        self._reserved = 0
        super().close()

    def _known(self, body: messages.FetchRequest) -> messages.FetchRequest:
        """The body with partitions of the session."""
        for topic in body.topics:
            encoded: Any = topic.partitions
            found: Any = list(map(self._by_bytes[self._key_of(topic)].__getitem__, encoded))
            topic.partitions = found
        self.body = body
        return body

    def _key_of(
        self,
        topic: messages.FetchRequest.FetchTopic | messages.FetchResponse.FetchableTopicResponse,
    ) -> TopicKey:
        return topic.topic_id if self.uses_topic_ids else topic.topic

    def _take_over(
        self, body: messages.FetchRequest, changes: Changes
    ) -> Steps[messages.FetchRequest | None]:
        """Have the session request what it did not yet, and forget what is not named.

        Returns None, and nothing is done, if a partition is named twice or has tagged fields. It
        yields after each change.
        """
        changed: list[tuple[RequestedPartition, bytes]] = []
        gone: list[EncodedPartition] = []
        decode = self._decode_partition
        for topic, named, new, old in changes:
            for entry in new:
                if self._is_flexible and entry[-1]:
                    return None
                partition = requested_partition(topic, decode(entry, 0)[0])
                before = self._by_key.get(partition.key)
                if before is not None and before.request in named:
                    return None
                changed.append((partition, entry))
                yield
            known = self._by_bytes[topic]
            gone += [known[entry] for entry in old]
        keys = {each.key for each, _ in changed}
        if len(keys) < len(changed):
            return None
        for before in gone:
            del self._by_key[before.key], self._by_bytes[before.key[0]][before.request]
            if before.key not in keys:
                self.update((), (before.key,))
            yield
        for each, entry in changed:
            key = each.key
            self._by_key[key] = self._by_bytes[key[0]][entry] = EncodedPartition(key, entry)
            self.update((each,), ())
            yield
        return self._known(body)

    def decode_partitions(self) -> Steps[None]:
        """Have the body as it is decoded in general; it yields after each partition."""
        assert self.body is not None
        decode = self._decode_partition
        for topic in self.body.topics:
            encoded: Any = topic.partitions
            topic.partitions = yield from map_in_steps(
                lambda each: decode(each.request, 0)[0], encoded
            )

    # -- the order is that of the request -----------------------------------------------

    def requested_partitions(self) -> list[RequestedPartition] | None:
        """The requests for the active partitions; None: they are many."""
        if len(self.active) > PARTITIONS_AT_ONCE:
            return None
        return [self.active[key].requested for key in self._in_order(self.active)]

    def requested_in_steps(self) -> Steps[list[RequestedPartition]]:
        """The same, as work that yields after each partition."""
        assert self.body is not None
        requested = []
        for topic in self.body.topics:
            encoded: Any = topic.partitions
            for each in encoded:
                cached = self.active.get(each.key)
                if cached is not None:
                    requested.append(cached.requested)
                yield
        return requested

    def in_order(self, partitions: Sequence[FetchPartition]) -> Sequence[FetchPartition]:
        """Partitions of this session."""
        by_key = {key_of(each): each for each in partitions}
        return [by_key[key] for key in self._in_order(by_key)]

    def _in_order(self, keys: Collection[PartitionKey]) -> list[PartitionKey]:
        if not keys:
            return []
        assert self.body is not None
        chosen = {self._by_key[key] for key in keys}
        encoded: Any = chain.from_iterable(topic.partitions for topic in self.body.topics)
        return [each.key for each in filter(chosen.__contains__, encoded)]

    # -- the answer ----------------------------------------------------------------------

    def answer(self, request: Request[object], answer: messages.FetchResponse) -> None:
        """Answer the fetch that was decoded last.

        Args:
            request: whose body it is.
            answer: of all partitions that are not idle.
        """
        if request.connection.is_closed:
            return
        with_records: list[EncodedPartition] = []
        refused: list[int] = []
        for topic in answer.responses:
            for part in topic.partitions:
                self._encode_part(topic, part, with_records, refused)
        self._send(request, answer, with_records, refused)

    def answer_in_steps(
        self, request: Request[object], answer: messages.FetchResponse
    ) -> Steps[None]:
        """The same, as work that yields after each partition that is not idle."""
        with_records: list[EncodedPartition] = []
        refused: list[int] = []
        for topic in answer.responses:
            for part in topic.partitions:
                self._encode_part(topic, part, with_records, refused)
                yield
        if not request.connection.is_closed:
            self._send(request, answer, with_records, refused)

    def _encode_part(
        self,
        topic: messages.FetchResponse.FetchableTopicResponse,
        part: messages.FetchResponse.PartitionData,
        with_records: list[EncodedPartition],
        refused: list[int],
    ) -> None:
        found = self._by_key[self._key_of(topic), part.partition_index]
        found.answer = self._encode_partition(part)
        if len(found.answer) > 1:
            with_records.append(found)
        if part.error_code:
            refused.append(part.error_code)

    def _send(
        self,
        request: Request[object],
        answer: messages.FetchResponse,
        with_records: Sequence[EncodedPartition],
        refused: Sequence[int],
    ) -> None:
        """Answer for all partitions, of which those that are not idle are encoded anew."""
        body = self.body
        assert body is not None
        answer.responses = [self._encoded(topic) for topic in body.topics]
        if request.connection.is_closed:
            return
        if request.connection.dispatcher.uses_memos:
            errors = request.route.errors
            errors.none_count += 1 + len(self._by_key) - len(refused)
            for error in refused:
                errors.count_one(error)
            request.answer_counted(answer, self._encode)
        else:  # a hook was set while this waited, which has to see all partitions
            buffers = self._encode(answer)
            whole = b"".join(
                part.read() if isinstance(part, FileSlice) else part for part in buffers
            )
            request.answer(messages.FetchResponse.decoder(request.api_version)(whole, 0)[0])
        for found in with_records:
            found.answer = ()  # its slice of a file keeps that open

    def _encoded(
        self, topic: messages.FetchRequest.FetchTopic
    ) -> messages.FetchResponse.FetchableTopicResponse:
        """A topic's answer as its partitions' buffers."""
        count = len(topic.partitions)
        buffers = list(chain.from_iterable(map(answer_of, topic.partitions)))
        partitions: Any = EncodedElements(count, buffers)
        return messages.FetchResponse.FetchableTopicResponse(
            topic=topic.topic, topic_id=topic.topic_id, partitions=partitions
        )


def names_all(body: messages.FetchRequest) -> bool:
    """Whether a fetch is a consumer's without a session, and with nothing wrong to explain."""
    return (
        body.session_epoch == FINAL_EPOCH
        and body.session_id == INVALID_SESSION_ID
        and max(body.replica_id, body.replica_state.replica_id) < 0
        and body.isolation_level in ISOLATION_LEVELS
    )


def session_of(request: Request[object]) -> ImplicitFetchSession | None:
    """The session that a request was decoded by."""
    session = request.connection.implicit_session
    if session is None or session.body is not request.body:
        return None
    assert isinstance(session, ImplicitFetchSession)
    return session


def leave_session(request: Request[messages.FetchRequest]) -> Steps[None]:
    """Have a request answered without its session, for there is something to explain.

    It yields after each partition.
    """
    session = session_of(request)
    if session is not None:
        request.connection.implicit_session = None
        session.close()
        yield from session.decode_partitions()


def begin_session(
    context: HandlerContext, request: Request[messages.FetchRequest], resolved: int
) -> None:
    """Have the next requests like this one decoded by a session.

    Args:
        context: the broker's.
        request: any Fetch.
        resolved: how many different partitions of it can be read.
    """
    connection, body = request.connection, request.body
    session = connection.implicit_session
    if (
        resolved > 1
        and request.api_version >= FIRST_VERSION_WITH_SESSIONS
        and (session is None or session.key != request.route.key)
        and context.fetch_sessions.has_implicit_room(resolved)
        and names_all(body)
        and resolved == sum(len(topic.partitions) for topic in body.topics)
    ):
        if session is not None:
            session.close()
        connection.implicit_session = ImplicitFetchSession(context, request.route)
