"""Memos of a connection's requests: what admission and decoding found, to be found again.

Clients repeat themselves: a producer's requests differ in their records, a consumer's in their
offsets. A memo belongs to one connection and one version of one API. It is learnt from requests
that took the slow path and were answered with success, knows them again by the bytes that do not
change, and holds what was found for them: the partitions, and the answer but for its numbers. The
dispatcher asks it only while the broker's admission epoch is the one that it was learnt in, so
it need not look whether the partition is still led here, or the principal still allowed. Whatever
it does not know, or cannot answer with success, takes the slow path, whose answers are the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from ....protocol.headers import FLEXIBLE_FROM
from ....storage.io.file_slice import FileSlice
from ..context import HandlerContext
from ..requests import ClientConnection, Request
from ..route import Route
from .marks import SHORT_MARK, find_short_mark

if TYPE_CHECKING:
    from ....protocol.codec.message import Message

REPEATS_FROM = 8
"""Behind API key, version and correlation id: with the client's id begins what comes again."""
PARTITIONS_MAX = 256
"""So many partitions, in one layout or in several, are remembered of one connection and API."""
LAYOUTS_MAX = 64
THROTTLE_TIME = "throttle_time_ms"
"""The field of all answers that are remembered; some versions do not have it."""
MISSES_BEFORE_LEARNING_ANEW = 1024
"""A connection that has shown more different requests than are remembered is left alone for so
long: learning costs as much as some requests."""

BodyT = TypeVar("BodyT")
AnswerT = TypeVar("AnswerT")


class Memo(ABC, Generic[BodyT, AnswerT]):
    """What is remembered of one connection's requests of one version of one API.

    Args:
        context: the broker's.
        route: of the requests.

    Attributes:
        epoch: the admission epoch in which all of it was learnt.
        stage: accounts for what is answered; None while there are no quotas.
    """

    __slots__ = (
        "_is_flexible",
        "_is_known",
        "_layouts",
        "_misses",
        "_partitions",
        "context",
        "epoch",
        "route",
        "stage",
    )

    def __init__(self, context: HandlerContext, route: Route) -> None:
        self.epoch = context.admission.epoch
        self.stage = context.quotas.stage
        self.context = context
        self.route = route
        self._is_flexible = route.api_version >= FLEXIBLE_FROM[route.api_key]
        self._is_known = False  # the last request, which the slow path has to answer all the same
        self._layouts = 0
        self._partitions = 0
        self._misses = 0

    def __len__(self) -> int:
        """How many requests are remembered."""
        return self._layouts

    @abstractmethod
    def take(self, connection: ClientConnection, frame: memoryview) -> bool:
        """Handle the request if it is a known one; returns whether that was done."""

    def expects(self) -> bool:
        """Whether it learns the next request that takes the slow path, when that is answered."""
        if self._is_known:
            self._is_known = False
            return False
        if self._layouts >= LAYOUTS_MAX or self._partitions >= PARTITIONS_MAX:
            self._misses += 1
            if self._misses < MISSES_BEFORE_LEARNING_ANEW:
                return False
            self._forget()
            self._layouts = self._partitions = self._misses = 0
        return True

    def learn(self, request: Request[BodyT], header: bytes, answer: AnswerT) -> None:
        """Remember a request by its answer, if that is of the common kind.

        Both have been used: marks are put in place of what differs from one to the next.

        Args:
            request: what was answered.
            header: its frame's bytes from where it repeats on, up to the body.
            answer: the message.
        """
        if self.epoch == self.context.admission.epoch:
            try:
                partitions = self._remember(request, header, answer)
            except ValueError:  # it is no pair, or there are marks in it already
                return
            if partitions:
                self._layouts += 1
                self._partitions += partitions

    @abstractmethod
    def _remember(self, request: Request[BodyT], header: bytes, answer: AnswerT) -> int:
        """Remember a request; returns how many partitions it names, 0 if it is not remembered.

        Raises:
            ValueError: the answer is not to what was requested, or one holds what looks like a
                mark.
        """

    @abstractmethod
    def _forget(self) -> None:
        """Forget all that was remembered."""

    def _encode(self, answer: Message) -> tuple[bytes, int]:
        """The whole frame of an answer, and where in it the throttle time stands; -1: nowhere."""
        setattr(answer, THROTTLE_TIME, SHORT_MARK)
        parts = self.route.encode_answer(0, answer)
        encoded = b"".join(part for part in parts if not isinstance(part, FileSlice))
        at = find_short_mark(encoded)
        return (encoded if at < 0 else encoded[:at] + bytes(4) + encoded[at + 4 :]), at


AnyMemo = Memo[object, "Message"]
"""A memo of any API."""
