"""A capture, said again to another broker, and where its answers differ from the recorded ones.

Requests are sent on as many connections as there were, in the order in which they came. Before
each, all answers are waited for that had come before it: so what depended on what is kept, long
polls and rebalances too, whatever the speed. What the recorded broker gave is replaced by what
the other gives: ids (`IdMapping`), and epochs and generations (`GivenNumbers`).

What was redacted cannot be said again; it is passed over, and told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import trio

from ...protocol import encode_body
from ...protocol.api_keys import ApiKey
from ...protocol.errors import EncodeError
from ...protocol.headers import read_request_header
from ...protocol.varints import Buffer
from ..comparison.differences import INDEX, compare, translated
from ..comparison.normalisation import IdMapping
from .addresses import Address
from .capture_file import Entry
from .conversation import is_answered
from .given_numbers import GivenNumbers
from .reading import Reading, read
from .recorded import FrameKind, RecordedConnection, RecordedEnd, RecordedFrame
from .replay_targets import ReplayTargets
from .replayed_connection import ReplayedConnection

ANSWER_SECONDS_MAX = 30.0
END_SECONDS_MAX = 30.0

AUTHENTICATION = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})


class Mismatch(NamedTuple):
    """Where the replay is not as the recording.

    Attributes:
        number: of the request, counted over the whole capture from 1.
        connection: its number in the capture.
        time_ns: when it was recorded.
        request: the API, its version and its number, such as `Fetch v12 #5`.
        path: to the field that differs; empty for the answer as a whole.
        expected: what the recorded broker answered, as text.
        actual: what the other one did, as text.
    """

    number: int
    connection: int
    time_ns: int
    request: str
    path: str
    expected: str
    actual: str

    @property
    def kind(self) -> tuple[str, str, str, str]:
        """The same for those that differ alike: API and version, field, and both values."""
        request = self.request.partition(" #")[0]
        return request, INDEX.sub("[]", self.path), self.expected, self.actual


class Outcome(NamedTuple):
    """What came of a replay.

    Attributes:
        requests_count: how many were sent.
        compared_count: how many answers were compared.
        mismatches_count: how many fields or answers differ.
        passed_over: what was not sent, and why, with how often.
    """

    requests_count: int
    compared_count: int
    mismatches_count: int
    passed_over: dict[str, int]


class _Sent(NamedTuple):
    """A request that was sent."""

    number: int
    frame: RecordedFrame
    group: str


class Replay:
    """One replay of a capture.

    Args:
        bootstrap: a broker of the cluster that is replayed to.
        on_mismatch: is told of each difference as it is found.
        speed: 1 waits between requests as long as it took then, 2 half as long; 0 not at all.
        answer_seconds_max: how long an answer may take beyond what it took then.
    """

    def __init__(
        self,
        bootstrap: Address,
        on_mismatch: Callable[[Mismatch], None],
        *,
        speed: float = 0.0,
        answer_seconds_max: float = ANSWER_SECONDS_MAX,
    ) -> None:
        self._targets = ReplayTargets(bootstrap)
        self._on_mismatch = on_mismatch
        self._speed = speed
        self._answer_seconds_max = answer_seconds_max
        self._ids = IdMapping()
        self._numbers = GivenNumbers(self._ids)
        self._connections: dict[int, ReplayedConnection] = {}
        self._sent: dict[tuple[int, int], _Sent] = {}
        self._passed_over: Counter[str] = Counter()
        self._requests_count = self._compared_count = self._mismatches_count = 0
        self._start: tuple[int, float] | None = None
        self._nursery: trio.Nursery | None = None

    async def run(self, entries: Iterable[Entry]) -> Outcome:
        """Replay all of it.

        Args:
            entries: of a capture, in their order.

        Raises:
            ReplayError: the cluster cannot be reached.
            CaptureError: out of the entries.
        """
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            await self._targets.refresh()
            for entry in entries:
                await self._keep_pace(entry.time_ns)
                if isinstance(entry, RecordedConnection):
                    await self._open(entry)
                elif isinstance(entry, RecordedFrame):
                    await self._frame(entry)
                elif isinstance(entry, RecordedEnd):
                    await self._end(entry)
            nursery.cancel_scope.cancel()
        for connection in self._connections.values():
            await connection.close()
        return Outcome(
            self._requests_count,
            self._compared_count,
            self._mismatches_count,
            dict(self._passed_over),
        )

    async def _keep_pace(self, time_ns: int) -> None:
        if not self._speed:
            return
        if self._start is None:
            self._start = time_ns, trio.current_time()
        began_ns, began = self._start
        await trio.sleep_until(began + (time_ns - began_ns) / 1e9 / self._speed)

    async def _open(self, entry: RecordedConnection) -> None:
        assert self._nursery is not None
        target = self._targets.target_of(entry.broker_name)
        connection = await ReplayedConnection.open(target)
        self._connections[entry.number] = connection
        self._nursery.start_soon(connection.run)

    async def _frame(self, frame: RecordedFrame) -> None:
        if frame.kind is FrameKind.REQUEST:
            await self._request(frame)
        elif frame.kind is FrameKind.ANSWER:
            await self._answer(frame)
        elif frame.kind is FrameKind.TOKEN:
            self._passed_over["authentication"] += 1

    async def _request(self, frame: RecordedFrame) -> None:
        connection = self._connections.get(frame.connection)
        if connection is None:
            self._passed_over["requests of connections whose beginning is not in the capture"] += 1
            return
        if frame.api_key in AUTHENTICATION:
            self._passed_over["authentication"] += 1
            return
        if frame.is_redacted:
            self._passed_over[f"{read(frame).name}, since secrets were taken out"] += 1
            return
        content, group = self._translated(frame)
        self._requests_count += 1
        if frame.api_key != ApiKey.PRODUCE or is_answered(frame.content, frame.api_version):
            sent = _Sent(self._requests_count, frame, group)
            self._sent[frame.connection, frame.correlation_id] = sent
        await connection.send(content)

    def _translated(self, frame: RecordedFrame) -> tuple[Buffer, str]:
        """A request with what the other broker gave, and the group that it is about."""
        message, version = read(frame).message, frame.api_version
        if message is None:
            return frame.content, ""
        group = getattr(message, "group_id", None) or ""
        try:
            before = encode_body(message, version)
            self._numbers.translate(message, group, with_ids=True)
            after = encode_body(translated(message, self._ids), version)
        except EncodeError:
            return frame.content, group
        if before == after:
            return frame.content, group
        _, _, position = read_request_header(frame.content)
        return bytes(frame.content[:position]) + after, group

    async def _answer(self, frame: RecordedFrame) -> None:
        sent = self._sent.pop((frame.connection, frame.correlation_id), None)
        if sent is None:
            return  # its request was passed over
        connection = self._connections[frame.connection]
        seconds = self._answer_seconds_max + frame.waited_ns / 1e9
        content = await connection.answer(frame.correlation_id, seconds)
        expected = read(frame)
        if expected.message is not None:
            self._targets.localise(expected.message, frame.api_key, expected.version)
        if content is None:
            ended = "the connection was ended"
            actual = ended if connection.is_ended else f"no answer within {seconds:.0f} s"
            self._tell(sent, "", "an answer", actual)
            return
        self._compared_count += 1
        self._compare(sent, frame, expected, frame._replace(content=content))

    def _compare(
        self, sent: _Sent, recorded: RecordedFrame, expected: Reading, other: RecordedFrame
    ) -> None:
        actual = read(other)
        if expected.message is None or actual.message is None:
            if bytes(recorded.content) != bytes(other.content):
                self._tell(sent, "", _outline(recorded), _outline(other))
            return
        if expected.version != actual.version:
            self._tell(sent, "", f"version {expected.version}", f"version {actual.version}")
            return
        arguments = (recorded.api_key, expected.version, expected.message, actual.message)
        compare(*arguments, self._ids)  # it learns the ids, which tell whose numbers are whose
        self._numbers.learn(expected.message, actual.message, sent.group)
        self._numbers.translate(expected.message, sent.group, with_ids=False)
        for difference in compare(*arguments, self._ids):
            self._tell(sent, difference.path, difference.expected, difference.actual)

    async def _end(self, entry: RecordedEnd) -> None:
        connection = self._connections.pop(entry.number, None)
        if connection is None:
            return
        unanswered = self._unanswered(entry.number)
        was_refused = unanswered and not entry.is_by_client and not entry.reason
        if was_refused and not await connection.has_ended(END_SECONDS_MAX):
            self._tell(unanswered[0], "", "the connection ended", "it goes on")
        await connection.close()

    def _unanswered(self, number: int) -> list[_Sent]:
        keys = [key for key in self._sent if key[0] == number]
        return [self._sent.pop(key) for key in keys]

    def _tell(self, sent: _Sent, path: str, expected: str, actual: str) -> None:
        self._mismatches_count += 1
        frame = sent.frame
        request = f"{read(frame).name} v{frame.api_version} #{frame.correlation_id}"
        self._on_mismatch(
            Mismatch(sent.number, frame.connection, frame.time_ns, request, path, expected, actual)
        )


def _outline(frame: RecordedFrame) -> str:
    reading = read(frame)
    size = f"{len(frame.content):,} bytes"
    return f"{size} ({reading.problem})" if reading.problem else size


def replay(
    entries: Iterable[Entry],
    bootstrap: Address,
    on_mismatch: Callable[[Mismatch], None],
    **options: Any,
) -> Outcome:
    """Replay a capture in a loop of its own; see `Replay`.

    Raises:
        ReplayError: the cluster cannot be reached.
        CaptureError: out of the entries.
    """
    from .proxy import single_cause

    async def run() -> Outcome:
        return await Replay(bootstrap, on_mismatch, **options).run(entries)

    try:
        return trio.run(run)
    except BaseExceptionGroup as group:
        raise single_cause(group) from None
