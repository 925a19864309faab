"""What each kind of fault does to a request, to its answer, and to the answer's bytes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...common.acl import parse_principal
from ...common.errors import ErrorCode
from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ...protocol.error_response import error_response
from ...protocol.sasl.plain import MECHANISM as PLAIN
from ...security.authenticator.sasl_authenticator import SaslState
from .fault import Fault, FaultStatus, TriggerState
from .frames import (
    HEAD_BYTES,
    Piece,
    Trickle,
    keep_memory,
    records_ranges,
    records_size,
    split,
    to_bytes,
    total_size,
    turn_over_bit,
)
from .matcher import Match
from .partial_errors import PartialErrors, marks_answer, prepare_to_mark, take_out, with_marks

if TYPE_CHECKING:
    from ...broker.broker import Broker
    from ...broker.request.requests import ClientConnection, Request
    from ..control.request_names import RequestNames

ANSWER_ACTIONS = frozenset(
    {
        "answer_after_applying",
        "corrupt_answer",
        "corrupt_byte",
        "corrupt_records",
        "delay_answer",
        "drop_answer",
        "lose_answer",
        "refuse_login",
        "throttle",
        "truncate_answer",
    }
)
"""What is done to answers; of these, several may meet."""
HELD_ACTIONS = frozenset({"delay", "throttle"})
"""After which a request is handled all the same."""
CORRUPTIONS = frozenset({"corrupt_answer", "corrupt_byte", "corrupt_records"})
AT_ANSWER_ACTIONS = frozenset({"refuse_login"})
"""What is decided when the answer is known: a login takes several requests."""
RECORDS_ACTIONS = frozenset({"corrupt_records"})
"""What only strikes answers that hold records."""

HIGHEST_BIT = 7
BATCH_LENGTH_AT = 8
BATCH_LENGTH_END = 12
CRC_COVERS_FROM = 21
"""Within a record batch of format v2: from here on its checksum counts."""


class ActiveFault:
    """One fault of a broker.

    Args:
        number: by which it is known.
        fault: what it is.
        owner: who added it.

    Attributes:
        strikes: how often it struck.
        is_lifted: whether it is over.
    """

    def __init__(self, number: int, fault: Fault, owner: str) -> None:
        self.number = number
        self.fault = fault
        self.owner = owner
        self.strikes = 0
        self.is_lifted = False
        self.trigger = TriggerState(fault.trigger)
        self._api_key = fault.match.api_key
        self._versions = fault.match.version_range

    def matches(self, request: Request[Any], names: Callable[[], RequestNames]) -> bool:
        """Whether a request is one of those that it is about.

        Args:
            names: what the request names; called only if that is looked at.
        """
        match = self.fault.match
        if self._api_key is not None and request.api_key != self._api_key:
            return False
        if self._versions is not None and request.api_version not in self._versions:
            return False
        if match.client_id is not None and request.client_id != match.client_id:
            return False
        # Who logs in is known only when the login is complete.
        if self.fault.action not in AT_ANSWER_ACTIONS and not self.matches_user(request):
            return False
        return not match.names_something or _names_match(match, names())

    def matches_user(self, request: Request[Any]) -> bool:
        """Whether the connection is one of the user that it is about, if it is about one."""
        user = self.fault.match.user
        return user is None or request.connection.principal == parse_principal(user)

    def fires(self) -> bool:
        """Count a request that matches; returns whether it is struck."""
        if self.is_lifted or not self.trigger.fires():
            return False
        self.strikes += 1
        return True

    def status(self) -> FaultStatus:
        """The fault as it is now."""
        return FaultStatus(
            self.number,
            self.fault,
            self.owner,
            self.trigger.matches,
            self.strikes,
            self.is_lifted,
        )


def _names_match(match: Match, names: RequestNames) -> bool:
    if match.topic is not None and match.topic not in names.topics:
        return False
    if match.partition is not None:
        partitions = {
            partition for topic, partition in names.partitions if match.topic in (None, topic)
        }
        if match.partition not in partitions:
            return False
    if match.group is not None and match.group not in names.groups:
        return False
    tid = match.transactional_id
    return tid is None or tid in names.transactional_ids


class Strikes:
    """Does what faults say, on one broker.

    Args:
        broker: the broker.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._dead: dict[ClientConnection, int] = {}
        self._line_free_at_ms: dict[ClientConnection, float] = {}
        self._taken_out: dict[tuple[Request[Any], int], PartialErrors] = {}

    def is_dead(self, connection: ClientConnection) -> bool:
        """Whether nothing comes over a connection any more, though it is open."""
        return connection in self._dead

    def lifted(self, fault: ActiveFault) -> None:
        """A fault is over: connections that it has made dead are closed."""
        dead = [each for each, number in self._dead.items() if number == fault.number]
        for connection in dead:
            del self._dead[connection]
            if not connection.is_closed:
                connection.fail("it was half-open, and the fault is lifted")

    # -- requests ------------------------------------------------------------------------

    def request(self, fault: ActiveFault, request: Request[Any]) -> bool:
        """Strike a request that has come; returns whether it is not to be handled now."""
        action = fault.fault.action
        connection = request.connection
        if action == "answer":
            return self._answer_error(fault, request)
        if action == "delay":
            self._resume_later(request, int(fault.fault.seconds * 1000))
            return True
        if action == "throttle":
            size = records_size(request.body)
            if size:
                self._resume_later(request, size * 1000 // fault.fault.size)
            return size > 0
        if action == "disconnect":
            connection.fail(f"fault {fault.number}")
            return True
        if action == "expire_session":
            connection.fail(
                f"fault {fault.number}: the login of {connection.principal} has expired"
            )
            return True
        if action == "half_open":
            self._dead = {each: by for each, by in self._dead.items() if not each.is_closed}
            self._dead[connection] = fault.number
            return True
        return action == "drop"

    def _answer_error(self, fault: ActiveFault, request: Request[Any]) -> bool:
        error = ErrorCode[fault.fault.error or ""]
        if marks_answer(request, error):
            prepare_to_mark(request)
            return False
        if request.api_key == ApiKey.PRODUCE and request.body.acks == 0:
            # Nobody listens to an answer: Kafka closes the connection in place of an error.
            request.connection.fail(f"fault {fault.number}: {error.name} on acks=0")
            return True
        part = take_out(request, fault.fault.match, error, self._broker)
        if part is not None:
            self._taken_out = {
                key: known
                for key, known in self._taken_out.items()
                if not key[0].connection.is_closed
            }
            self._taken_out[request, fault.number] = part
            return False
        request.answer(self._error(request, error))
        return True

    def _error(self, request: Request[Any], error: ErrorCode) -> Any:
        message = f"{error.name} by a fault of the test"
        return error_response(request.api_key, request.api_version, request.body, error, message)

    def _resume_later(self, request: Request[Any], milliseconds: int) -> None:
        keep_memory(request.body)
        self._after(milliseconds, lambda: self._broker.dispatcher.resume(request))

    # -- answers -------------------------------------------------------------------------

    def completes_login(self, request: Request[Any]) -> bool:
        """Whether the answer to a request is that somebody has logged in."""
        authenticator = request.connection.authenticator
        return (
            request.api_key == ApiKey.SASL_AUTHENTICATE
            and authenticator is not None
            and authenticator.state is SaslState.AUTHENTICATED
        )

    def refused_login(self, request: Request[Any]) -> Any:
        """What is answered in place of a login, as to a wrong password."""
        authenticator = request.connection.authenticator
        assert authenticator is not None
        mechanism = authenticator.mechanism
        reason = (
            "Authentication failed: Invalid username or password"
            if mechanism == PLAIN
            else "Authentication failed during authentication due to invalid credentials with SASL "
            f"mechanism {mechanism}"
        )
        return messages.SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=reason
        )

    def answer(self, fault: ActiveFault, request: Request[Any], response: Any) -> Any:
        """The answer to give in place of the broker's."""
        action = fault.fault.action
        if action == "answer_after_applying":
            return self._error(request, ErrorCode[fault.fault.error or ""])
        if action == "answer":
            part = self._taken_out.pop((request, fault.number), None)
            if part is not None:
                return part.beside(request, response)
            error = ErrorCode[fault.fault.error or ""]
            return with_marks(request, response, fault.fault.match, error, self._broker)
        return response

    def framed(
        self, fault: ActiveFault, request: Request[Any], buffers: list[Any]
    ) -> list[Any] | None:
        """The bytes to send in place of an answer's; None if the fault sends them, or nobody."""
        action, connection = fault.fault.action, request.connection
        if action == "delay_answer":
            self._after(int(fault.fault.seconds * 1000), lambda: _send(request, buffers))
            return None
        if action == "drop_answer":
            # Where there is none (acks=0) there is nothing to drop, and the connection goes on.
            return None if buffers else buffers
        if action == "refuse_login":
            request.send(buffers)
            connection.fail(f"fault {fault.number}: the login of {connection.principal} is refused")
            return None
        if action == "lose_answer":
            connection.fail(f"fault {fault.number}")
            return None
        if action == "truncate_answer":
            # What is answered behind it must not look like the rest of it.
            order = connection.unanswered
            order.insert(order.index(request) + 1, Piece(None))
            request.send(split(buffers, fault.fault.size)[0])
            connection.fail(f"fault {fault.number}")
            return None
        if action == "throttle":
            self._trickle(request, buffers, fault.fault.size)
            return None
        if action in CORRUPTIONS:
            return _corrupted(fault, buffers)
        return buffers

    def _trickle(self, request: Request[Any], buffers: list[Any], bytes_per_second: int) -> None:
        connection = request.connection
        now_ms = self._broker.clock.monotonic_ms()
        lines = {each: at for each, at in self._line_free_at_ms.items() if not each.is_closed}
        self._line_free_at_ms = lines

        def note_sent(busy_ms: float) -> None:
            since_ms = max(lines.get(connection, 0), self._broker.clock.monotonic_ms())
            lines[connection] = since_ms + busy_ms

        wait_ms = int(lines.get(connection, now_ms) - now_ms)
        Trickle(request, buffers, bytes_per_second, self._after, note_sent).start(wait_ms)

    def _after(self, milliseconds: int, function: Callable[[], None]) -> None:
        self._broker.timers.schedule(self._broker.clock.monotonic_ms() + milliseconds, function)


def _send(request: Request[Any], buffers: list[Any]) -> None:
    if not request.connection.is_closed:
        request.send(buffers)


def _corrupted(fault: ActiveFault, buffers: list[Any]) -> list[Any]:
    """The answer with one bit flipped; at random another one at each strike."""
    action = fault.fault.action
    data = to_bytes(buffers)
    if action == "corrupt_byte":
        if fault.fault.size < len(data):
            turn_over_bit(data, fault.fault.size, HIGHEST_BIT)
        return [data]
    where = range(HEAD_BYTES, total_size(buffers))
    if action == "corrupt_records":
        first = records_ranges(buffers)[0]
        length = int.from_bytes(
            data[first.start + BATCH_LENGTH_AT : first.start + BATCH_LENGTH_END]
        )
        end = min(first.start + BATCH_LENGTH_END + length, first.stop)
        where = range(first.start + CRC_COVERS_FROM, end)
    rng = random.Random(f"{fault.fault.seed} {fault.strikes}")
    if where:
        turn_over_bit(data, rng.choice(where), rng.randrange(8))
    return [data]
