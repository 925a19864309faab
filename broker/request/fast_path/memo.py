"""Memos of a connection's requests: what admission and decoding found, to be found again.

Clients repeat themselves: a producer's requests differ in their records, a consumer's in their
offsets. A memo belongs to one connection and one version of one API. It is learnt from requests
that took the slow path and were admitted, knows them again by the bytes that do not change, and
holds what was found for them: the partitions, and the encoded answer but for its numbers. The
dispatcher asks it only while the broker's admission epoch is the one that it was learnt in, so
it need not look whether the partition is still led here, or the principal still allowed. Whatever
it does not know, or cannot answer with success, takes the slow path, whose answers are the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from ....storage.io.file_slice import FileSlice
from ..context import HandlerContext
from ..requests import ClientConnection, Request
from ..route import Route
from .marks import SHORT_MARK, encode_short_mark

if TYPE_CHECKING:
    from ....protocol.codec.message import Message

PARTITIONS_MAX = 256
"""So many partitions, in one layout or in several, are remembered of one connection and API."""
LAYOUTS_MAX = 64
THROTTLE_TIME = "throttle_time_ms"
"""The field of all answers that are remembered; some versions do not have it."""
MISSES_BEFORE_LEARNING_ANEW = 1024
"""A connection that has shown more different requests than are remembered is left alone for so
long: learning costs as much as some requests."""

BodyT = TypeVar("BodyT")


class Memo(ABC, Generic[BodyT]):
    """What is remembered of one connection's requests of one version of one API.

    Args:
        context: the broker's.
        route: of the requests.

    Attributes:
        epoch: the admission epoch in which all of it was learnt.
    """

    __slots__ = ("_is_known", "_layouts", "_misses", "_partitions", "context", "epoch", "route")

    def __init__(self, context: HandlerContext, route: Route) -> None:
        self.epoch = context.admission.epoch
        self.context = context
        self.route = route
        self._is_known = False  # the last request, which the slow path had to answer all the same
        self._layouts = 0
        self._partitions = 0
        self._misses = 0

    def __len__(self) -> int:
        """How many requests are remembered."""
        return self._layouts

    @abstractmethod
    def take(self, connection: ClientConnection, frame: memoryview) -> bool:
        """Handle the request if it is a known one; returns whether that was done."""

    def learn(
        self, request: Request[object], frame: memoryview, position: int, body: BodyT
    ) -> None:
        """Remember a request that took the slow path.

        Args:
            request: as the slow path has admitted and handled it.
            frame: all of it.
            position: where its body begins.
            body: what was decoded there.
        """
        if self._is_known:
            self._is_known = False
            return
        if self._layouts >= LAYOUTS_MAX or self._partitions >= PARTITIONS_MAX:
            self._misses += 1
            if self._misses < MISSES_BEFORE_LEARNING_ANEW:
                return
            self._forget()
            self._layouts = self._partitions = self._misses = 0
        partitions = self._remember(request, frame, position, body)
        if partitions:
            self._layouts += 1
            self._partitions += partitions

    def _encode(self, answer: Message) -> bytes:
        """The whole frame of an answer whose records, if it has any, are bytes."""
        parts = self.route.encode_answer(0, answer)
        return b"".join(part for part in parts if not isinstance(part, FileSlice))

    def _find_throttle_time(self, answer: Message) -> int:
        """Where the throttle time stands in the frame of an answer; -1: it has none."""
        setattr(answer, THROTTLE_TIME, SHORT_MARK)
        at = self._encode(answer).find(encode_short_mark(SHORT_MARK))
        setattr(answer, THROTTLE_TIME, 0)
        return at

    @abstractmethod
    def _remember(
        self, request: Request[object], frame: memoryview, position: int, body: BodyT
    ) -> int:
        """Remember a request if it is of the common kind; returns how many partitions it names."""

    @abstractmethod
    def _forget(self) -> None:
        """Forget all that was remembered."""


AnyMemo = Memo[object]
"""A memo of any API."""
