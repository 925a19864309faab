"""A capture, replayed to another broker, and where its answers differ from the recorded ones.

Requests are sent on as many connections as there were, in the order in which they came. Before
each, all answers are waited for that had come before it: so what depended on what was stored, long
polls and rebalances too, whatever the speed. What the recorded broker assigned is replaced by what
the other assigns: ids (`IdMapping`), and epochs and generations (`AssignedNumbers`).

What was redacted cannot be sent again; it is skipped, and reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from struct import Struct
from typing import Any, NamedTuple

import trio

from ...protocol import decode_body, encode_body
from ...protocol.api_keys import ApiKey
from ...protocol.errors import EncodeError, ProtocolError
from ...protocol.frames import FrameReader
from ...protocol.headers import read_request_header, read_response_header, request_header
from ...protocol.messages import MetadataRequest
from ...protocol.varints import Buffer
from ..comparison.differences import INDEX, compare, translated
from ..comparison.normalisation import IdMapping
from .addresses import Address, places_in
from .assigned_numbers import AssignedNumbers
from .capture_file import Entry
from .conversation import is_answered
from .proxied_connection import FRAME_BYTES_MAX, PROXY_RECEIVE_BYTES
from .reading import Reading, read
from .recording import FrameKind, RecordedConnection, RecordedEnd, RecordedFrame

_unpack_int32 = Struct(">i").unpack_from
REPLAY_METADATA_VERSION = 5
"""Brokers have it since Kafka 1.0."""
CLIENT_ID = "odradek-replay"

CONNECT_SECONDS_MAX = METADATA_SECONDS_MAX = ANSWER_SECONDS_MAX = END_SECONDS_MAX = 30.0
ANSWERS_WAITING_MAX = 10_000

AUTHENTICATION = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})


class ReplayError(Exception):
    """A replay cannot go on; the text is a sentence."""


class ReplayedConnection:
    """One connection to the broker that is replayed to.

    Args:
        stream: to the broker.

    Attributes:
        is_ended: whether the broker has closed it.
    """

    def __init__(self, stream: trio.SocketStream) -> None:
        self.is_ended = False
        self._stream = stream
        self._reader = FrameReader(FRAME_BYTES_MAX)
        self._answers: dict[int, Buffer] = {}
        self._has_come = trio.Event()

    @classmethod
    async def open(cls, address: Address) -> ReplayedConnection:
        """Connect.

        Raises:
            ReplayError: nobody answers there.
        """
        try:
            with trio.fail_after(CONNECT_SECONDS_MAX):
                return cls(await trio.open_tcp_stream(*address))
        except (OSError, ValueError, trio.TooSlowError) as error:
            raise ReplayError(f"no broker answers at {address}") from error

    async def run(self) -> None:
        """Take answers as they come, until the connection ends."""
        try:
            while received := await self._stream.receive_some(PROXY_RECEIVE_BYTES):
                for frame in self._reader.receive(memoryview(received)):
                    if len(frame) >= 4 and len(self._answers) < ANSWERS_WAITING_MAX:
                        self._answers[_unpack_int32(frame)[0]] = frame
                self._wake()
                if self._reader.failure is not None:
                    break
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            self.is_ended = True
            self._wake()

    async def send(self, frame: Buffer) -> None:
        """Send a frame; nothing happens if the connection has ended."""
        try:
            await self._stream.send_all(len(frame).to_bytes(4, "big") + bytes(frame))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.is_ended = True

    async def answer(self, correlation_id: int, seconds: float) -> Buffer | None:
        """The answer to a request; None if none comes in time, or before the end.

        Args:
            correlation_id: the request's number.
            seconds: how long to wait.
        """
        with trio.move_on_after(seconds):
            while correlation_id not in self._answers and not self.is_ended:
                await self._has_come.wait()
        return self._answers.pop(correlation_id, None)

    async def has_ended(self, seconds: float) -> bool:
        """Whether the broker ends the connection within some seconds."""
        with trio.move_on_after(seconds):
            while not self.is_ended:
                await self._has_come.wait()
        return self.is_ended

    async def close(self) -> None:
        """End it."""
        await trio.aclose_forcefully(self._stream)

    def _wake(self) -> None:
        event, self._has_come = self._has_come, trio.Event()
        event.set()


class ReplayTargets:
    """Brokers of two clusters, by their ids.

    Args:
        bootstrap: a broker of the cluster that is replayed to.
    """

    def __init__(self, bootstrap: Address) -> None:
        self._bootstrap = bootstrap
        self._recorded: dict[Address, int] = {}
        self._targets: dict[int, Address] = {}

    async def refresh(self) -> None:
        """Ask the cluster for its brokers.

        Raises:
            ReplayError: it does not answer.
        """
        connection = await ReplayedConnection.open(self._bootstrap)
        frame = request_header(ApiKey.METADATA, REPLAY_METADATA_VERSION, 1, CLIENT_ID)
        frame += encode_body(MetadataRequest(topics=[]), REPLAY_METADATA_VERSION)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(connection.run)
                await connection.send(frame)
                answer = await connection.answer(1, METADATA_SECONDS_MAX)
                nursery.cancel_scope.cancel()
        finally:
            await connection.close()
        try:
            _, position = read_response_header(
                answer or b"", ApiKey.METADATA, REPLAY_METADATA_VERSION
            )
            body = (answer or b"")[position:]
            metadata = decode_body(ApiKey.METADATA, REPLAY_METADATA_VERSION, body, response=True)
        except ProtocolError as error:
            raise ReplayError(
                f"what listens at {self._bootstrap} does not answer as Kafka does: {error}"
            ) from error
        self._targets = {
            broker.node_id: Address(broker.host, broker.port) for broker in metadata.brokers
        }

    def localise(self, message: Any, api_key: int, version: int) -> None:
        """Put the addresses of this cluster into a recorded answer, and note the ids of theirs.

        Args:
            message: the answer; changed in place.
            api_key: of the request that it answers.
            version: of that request.
        """
        for place in places_in(message, api_key, version):
            node_id = getattr(place, "node_id", getattr(place, "broker_id", None))
            if isinstance(node_id, int):
                self._recorded[Address(place.host, place.port)] = node_id
                if node_id in self._targets:
                    place.host, place.port = self._targets[node_id]

    def target_of(self, recorded: Address) -> Address:
        """Where the requests to a recorded broker go."""
        node_id = self._recorded.get(recorded)
        return self._bootstrap if node_id is None else self._targets.get(node_id, self._bootstrap)


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


class ReplaySummary(NamedTuple):
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
        on_mismatch: is called with each difference as it is found.
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
        self._numbers = AssignedNumbers(self._ids)
        self._connections: dict[int, ReplayedConnection] = {}
        self._sent: dict[tuple[int, int], _Sent] = {}
        self._passed_over: Counter[str] = Counter()
        self._requests_count = self._compared_count = self._mismatches_count = 0
        self._start: tuple[int, float] | None = None
        self._nursery: trio.Nursery | None = None

    async def run(self, entries: Iterable[Entry]) -> ReplaySummary:
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
        return ReplaySummary(
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
            self._report(sent, "", "an answer", actual)
            return
        self._compared_count += 1
        self._compare(sent, frame, expected, frame._replace(content=content))

    def _compare(
        self, sent: _Sent, recorded: RecordedFrame, expected: Reading, other: RecordedFrame
    ) -> None:
        actual = read(other)
        if expected.message is None or actual.message is None:
            if bytes(recorded.content) != bytes(other.content):
                self._report(sent, "", _outline(recorded), _outline(other))
            return
        if expected.version != actual.version:
            self._report(sent, "", f"version {expected.version}", f"version {actual.version}")
            return
        arguments = (recorded.api_key, expected.version, expected.message, actual.message)
        compare(*arguments, self._ids)  # it learns the ids, which tell whose numbers are whose
        self._numbers.learn(expected.message, actual.message, sent.group)
        self._numbers.translate(expected.message, sent.group, with_ids=False)
        for difference in compare(*arguments, self._ids):
            self._report(sent, difference.path, difference.expected, difference.actual)

    async def _end(self, entry: RecordedEnd) -> None:
        connection = self._connections.pop(entry.number, None)
        if connection is None:
            return
        unanswered = [self._sent.pop(key) for key in list(self._sent) if key[0] == entry.number]
        was_refused = unanswered and not entry.is_by_client and not entry.reason
        if was_refused and not await connection.has_ended(END_SECONDS_MAX):
            self._report(unanswered[0], "", "the connection ended", "it goes on")
        await connection.close()

    def _report(self, sent: _Sent, path: str, expected: str, actual: str) -> None:
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
) -> ReplaySummary:
    """Replay a capture in a loop of its own; see `Replay`.

    Raises:
        ReplayError: the cluster cannot be reached.
        CaptureError: out of the entries.
    """
    from .proxy import single_cause

    async def run() -> ReplaySummary:
        return await Replay(bootstrap, on_mismatch, **options).run(entries)

    try:
        return trio.run(run)
    except BaseExceptionGroup as group:
        raise single_cause(group) from None
