"""The stage that accounts for requests and keeps clients to their quotas (KIP-13, KIP-124).

Nothing goes around it: it stands before the dispatcher, where it sees each frame, and where an
answer is completed, in `Request` and in the memos. As in Kafka an answer goes out at once and says
for how long its connection is muted then (KIP-219); one to a consumer that is above its quota
holds no records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from ....protocol.api_keys import ApiKey
from ....runtime.clock import Clock, precise_seconds
from ....security.quotas.entity import ClientQuotaEntity
from ....security.quotas.quota_managers import QuotaManagers
from ....security.quotas.rate import QuotaSensor
from ..requests import Accountable, ClientConnection, Request

if TYPE_CHECKING:
    from ....protocol.codec.message import Message

PERCENT: Final = 100
CLIENTS_MAX: Final = 10_000
"""So many clients are remembered with what measures them."""
INT_MAX: Final = 2**31 - 1

EXEMPT: Final = frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.ALLOCATE_PRODUCER_IDS,
    }
)
"""What brokers send each other; Kafka counts its time, and throttles nobody for it."""

Entry = Callable[[ClientConnection, memoryview], None]
"""Takes a frame of a connection."""


class ClientSensors(NamedTuple):
    """What measures one client; None where nothing bounds it."""

    produce: QuotaSensor | None
    fetch: QuotaSensor | None
    request: QuotaSensor | None


class QuotaStage:
    """Accounts for requests and says how long their clients are to wait.

    Args:
        managers: of the quotas.
        clock: the time.
        invalidate: called when memos must let go of the sensors that they keep.
        seconds: measures how long a request is worked on.

    Attributes:
        has_time_quotas: whether there is a quota of anyone's time.
    """

    def __init__(
        self,
        managers: QuotaManagers,
        clock: Clock,
        invalidate: Callable[[], None],
        seconds: Callable[[], float] = precise_seconds,
    ) -> None:
        self.managers = managers
        for manager in (managers.produce, managers.fetch, managers.request):
            manager.sensors.on_forgotten = self._let_go
        self.has_time_quotas = False
        self._invalidate = invalidate
        self._monotonic_ms = clock.monotonic_ms
        self._seconds = seconds
        self._clients: dict[tuple[str, str], ClientSensors] = {}
        self._frame_bytes = 0
        self._began_s = 0.0

    def set(self, entity: ClientQuotaEntity, quotas: Mapping[str, float]) -> None:
        """An entity has these quotas, and no others."""
        self.managers.set(entity, quotas)
        self.has_time_quotas = len(self.managers.request.quotas) > 0
        self._clients.clear()

    def _let_go(self) -> None:
        """Some sensors are forgotten: who comes again gets the one of the others."""
        self._clients.clear()
        self._invalidate()

    def metered(self, dispatch: Entry) -> Entry:
        """Have every frame seen here on its way to the dispatcher."""

        def enter(connection: ClientConnection, frame: memoryview) -> None:
            self._frame_bytes = len(frame)
            if self.has_time_quotas:
                self._began_s = self._seconds()
            dispatch(connection, frame)
            if self._frame_bytes:  # else a memo has accounted for it
                self._note_waiting(connection)

        return enter

    def _note_waiting(self, connection: ClientConnection) -> None:
        """Have the request that was dispatched know what it has cost, if it waits."""
        request = connection.unanswered[-1] if connection.unanswered else None
        if isinstance(request, Accountable) and not hasattr(request, "frame_bytes"):
            request.frame_bytes = self._frame_bytes
            request.used_s = self._seconds() - self._began_s if self.has_time_quotas else 0.0

    def sensors_of(self, connection: ClientConnection, client_id: str) -> ClientSensors:
        """What measures a client."""
        key = connection.principal, client_id
        found = self._clients.get(key)
        if found is None:
            if len(self._clients) >= CLIENTS_MAX:
                self._clients.clear()
            user = connection.principal.partition(":")[2]
            managers, now_ms = self.managers, self._monotonic_ms()
            found = self._clients[key] = ClientSensors(
                managers.produce.sensor_of(user, client_id, now_ms),
                managers.fetch.sensor_of(user, client_id, now_ms),
                managers.request.sensor_of(user, client_id, now_ms),
            )
        return found

    # -- Produce and all others -----------------------------------------------------------

    def throttle(self, request: Request[object], response: Message) -> int:
        """Account for an answer; returns for how many ms its connection is muted.

        Args:
            request: what is answered.
            response: with what; that of a Fetch has been accounted for by `must_wait_to_fetch`,
                and what the controller had to do by its quota of mutations.
        """
        if self._is_exempt(request):
            return 0
        said: int = getattr(response, "throttle_time_ms", 0)
        if request.api_key is ApiKey.FETCH:
            return said
        throttle_ms = self.answered(
            request.connection,
            request.client_id,
            request,
            is_produce=request.api_key is ApiKey.PRODUCE,
        )
        return max(said, throttle_ms)

    def produced(self, sensors: ClientSensors | None) -> int:
        """Account for the known Produce that is being dispatched; for how many ms to mute.

        That is done before its answer, so that those that came with it wait as well: Kafka, too,
        reads the next request of a connection when it is not muted any more.
        """
        assert sensors is not None
        produce, _, time = sensors
        now_ms = self._monotonic_ms()
        throttle_ms = 0
        if produce is not None and (throttle_ms := produce.record(self._frame_bytes, now_ms)):
            produce.note_throttled(throttle_ms)
        if time is not None and (
            time_ms := time.record((self._seconds() - self._began_s) * PERCENT, now_ms)
        ):
            time.note_throttled(time_ms)
            throttle_ms = max(throttle_ms, time_ms)
        self._frame_bytes = 0
        return throttle_ms

    def answered(
        self,
        connection: ClientConnection,
        client_id: str,
        request: Accountable | None,
        *,
        is_produce: bool,
        is_silent: bool = False,
    ) -> int:
        """Account for a request that is being answered; returns for how many ms to mute.

        Args:
            connection: whose it is.
            client_id: as the request has it.
            request: what is answered; None: the request that is being dispatched.
            is_produce: whether its bytes count.
            is_silent: whether it is a Produce without an answer, whose time does not count.
        """
        produce, _, time = self.sensors_of(connection, client_id)
        throttle_ms = 0
        now_ms = self._monotonic_ms()
        if is_produce and produce is not None:
            frame_bytes = getattr(request, "frame_bytes", self._frame_bytes)
            throttle_ms = produce.record(frame_bytes, now_ms)
            if throttle_ms:
                produce.note_throttled(throttle_ms)
        if time is not None and not is_silent:
            time_ms = time.record(self._used_percent(request), now_ms)
            if time_ms:
                time.note_throttled(time_ms)
                throttle_ms = max(throttle_ms, time_ms)
        return throttle_ms

    def _used_percent(self, request: Accountable | None) -> float:
        used_s: float = getattr(request, "used_s", -1.0)
        if used_s < 0:  # it is answered in the turn in which it came
            used_s = self._seconds() - self._began_s
        return used_s * PERCENT

    def _is_exempt(self, request: Request[object]) -> bool:
        return request.is_from_follower or request.connection.is_broker or request.api_key in EXEMPT

    # -- Fetch ----------------------------------------------------------------------------

    def fetch_bytes_max(self, connection: ClientConnection, client_id: str) -> int:
        """More in one answer would be above the quota even if nothing was fetched before."""
        fetch = self.sensors_of(connection, client_id).fetch
        return INT_MAX if fetch is None else min(int(fetch.burst), INT_MAX)

    def may_fetch(self, connection: ClientConnection, client_id: str, size: int) -> bool:
        """Account for an answer of so many bytes to the request that is being dispatched, if its
        client is within its quotas; else nothing is counted."""
        _, fetch, time = self.sensors_of(connection, client_id)
        now_ms = self._monotonic_ms()
        if fetch is not None and fetch.record(size, now_ms):
            fetch.unrecord(size)
            return False
        if time is not None:
            percent = (self._seconds() - self._began_s) * PERCENT
            if time.record(percent, now_ms):
                time.unrecord(percent)
                if fetch is not None:
                    fetch.unrecord(size)
                return False
        return True

    def must_wait_to_fetch(
        self, connection: ClientConnection, client_id: str, request: Accountable, size: int
    ) -> int:
        """Account for the answer to a Fetch; where its client is above a quota nothing is counted
        as fetched, an empty answer goes out, and this returns for how many ms to mute.

        Args:
            connection: whose it is.
            client_id: as the request has it.
            request: what is answered.
            size: of the answer, in bytes.
        """
        _, fetch, time = self.sensors_of(connection, client_id)
        now_ms = self._monotonic_ms()
        time_ms = fetch_ms = 0
        if time is not None:
            time_ms = time.record(self._used_percent(request), now_ms)
            if time_ms:
                time.note_throttled(time_ms)
        if fetch is not None:
            fetch_ms = fetch.record(size, now_ms)
            if fetch_ms:
                fetch.note_throttled(fetch_ms)
            if fetch_ms or time_ms:
                fetch.unrecord(size)
        return max(fetch_ms, time_ms)
