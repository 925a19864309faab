"""The faults of one broker, which decide about each request and each answer.

A fault counts a request when it comes; what it does to the answer is remembered until there is
one. Of several faults that would keep a request from being handled the first added does, and of
several that would send its answer in another way; what changes the answer goes with both.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from ...broker.handlers.registry import REGISTRATIONS
from ...broker.interbroker.registered_brokers import MECHANISM
from ...protocol.api_keys import ApiKey
from ..control.framing import VerbError
from ..control.request_names import RequestNames, nameable, names_in
from .fault import Fault, ordinal
from .frames import records_ranges
from .matcher import VERSION_MAX, Match
from .strikes import (
    ANSWER_ACTIONS,
    AT_ANSWER_ACTIONS,
    CORRUPTIONS,
    HELD_ACTIONS,
    RECORDS_ACTIONS,
    ActiveFault,
    Strikes,
)

if TYPE_CHECKING:
    from ...broker.broker import Broker
    from ...broker.request.requests import Request


def check_can_strike(match: Match) -> None:
    """Refuse a fault that no request of this broker would ever meet.

    Raises:
        ValueError: the API or version is not served, or its requests do not name such a thing.
    """
    key = match.api_key
    if key is None:
        return
    registration = REGISTRATIONS.get(key)
    if registration is None:
        raise ValueError(f"{match.api} is not served by this broker, so no fault can strike it")
    versions = match.version_range
    served = registration.versions
    if versions is not None and (
        versions.start not in served or (versions[-1] not in served and versions[-1] < VERSION_MAX)
    ):
        raise ValueError(
            f"{match.api} is served in the versions {served.start} to {served[-1]}, so no request "
            f"comes in {match.version}"
        )
    for kind in ("topic", "partition", "group", "transactional_id"):
        if getattr(match, kind) is not None and kind not in nameable(key):
            raise ValueError(_names_none(match, kind, key))


def _names_none(match: Match, kind: str, key: ApiKey) -> str:
    can = sorted(nameable(key))
    named = f"a fault may look at its {' or '.join(can)}" if can else "it names nothing"
    return f"a request of {match.api} names no {kind}: {named}"


logger = logging.getLogger("odradek.testing.faults")

FAULTS_MAX = 1000
"""So many are known, lifted ones with the others."""
STRIKES_LOGGED = 100
"""Of one fault; then every hundredth strike is."""


class FaultTable:
    """All faults of a broker.

    Args:
        broker: whose they are.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._faults: dict[int, ActiveFault] = {}
        self._last_number = 0
        self._pending: dict[Request[Any], list[ActiveFault]] = {}
        self.strikes = Strikes(broker)

    def add(self, fault: Fault, owner: str) -> ActiveFault:
        """Have a fault strike from now on.

        Raises:
            ValueError: no request of this broker would meet it.
            VerbError: there are too many.
        """
        check_can_strike(fault.match)
        self._drop_lifted()
        self._last_number += 1
        added = ActiveFault(self._last_number, fault, owner)
        self._faults[added.number] = added
        self._broker.server.refuses = self._refuses
        logger.info("fault %d is added: %s", added.number, fault)
        return added

    def _drop_lifted(self) -> None:
        while len(self._faults) >= FAULTS_MAX:
            oldest = next((fault for fault in self._faults.values() if fault.is_lifted), None)
            if oldest is None:
                raise VerbError(f"the broker has {FAULTS_MAX} faults already: lift some")
            del self._faults[oldest.number]

    def find(self, number: int) -> ActiveFault:
        """The fault of a number.

        Raises:
            VerbError: there is none, or it is long over.
        """
        found = self._faults.get(number)
        if found is None:
            raise VerbError(f"the broker knows no fault {number}; has it been restarted since?")
        return found

    def lift(self, fault: ActiveFault) -> None:
        """Have a fault strike no more; it may be lifted already."""
        if fault.is_lifted:
            return
        fault.is_lifted = True
        times = "once" if fault.strikes == 1 else f"{fault.strikes} times"
        logger.info("fault %d is lifted, it struck %s: %s", fault.number, times, fault.fault)
        self.strikes.lifted(fault)

    def known(self) -> list[ActiveFault]:
        """Those that are not lifted, as they were added."""
        return [fault for fault in self._faults.values() if not fault.is_lifted]

    # -- what the hooks ask -----------------------------------------------------------

    def take_request(self, request: Request[Any]) -> bool:
        """Whether a fault keeps the request from being handled now."""
        if self.strikes.is_dead(request.connection):
            return True
        found: RequestNames | None = None

        def names() -> RequestNames:
            nonlocal found
            if found is None:
                found = names_in(request, self._broker)
            return found

        taken = False
        for fault in self.known():
            if taken and fault.fault.action not in ANSWER_ACTIONS:
                continue
            if self._is_let_alone(fault, request) or not fault.matches(request, names):
                continue
            if fault.fault.action in RECORDS_ACTIONS | AT_ANSWER_ACTIONS:
                self._remember(request, fault)
            elif fault.fires():
                self._log_strike(fault, request)
                is_taken = not taken and self.strikes.request(fault, request)
                if is_taken and fault.fault.action not in HELD_ACTIONS:
                    self._pending.pop(request, None)
                    return True
                if fault.fault.action in ANSWER_ACTIONS or not is_taken:
                    self._remember(request, fault)
                taken = taken or is_taken
        return taken

    def take_answer(self, request: Request[Any], response: Any) -> Any:
        """The answer to give in place of the broker's."""
        pending = self._pending.get(request, ())
        for fault in [each for each in pending if each.fault.action in AT_ANSWER_ACTIONS]:
            if (
                self.strikes.completes_login(request)
                and fault.matches_user(request)
                and fault.fires()
            ):
                self._log_strike(fault, request)
                return self.strikes.refused_login(request)
            self._pending[request].remove(fault)
        for fault in pending:
            response = self.strikes.answer(fault, request, response)
        return response

    def take_framed(self, request: Request[Any], buffers: list[Any]) -> bool:
        """Whether faults have taken over to send the encoded answer."""
        pending = self._pending.pop(request, ())
        if self.strikes.is_dead(request.connection):
            return True
        left: list[Any] | None = buffers
        # What is sent is changed first, and then sent in another way than usual.
        for fault in sorted(pending, key=lambda fault: fault.fault.action not in CORRUPTIONS):
            if fault.fault.action in RECORDS_ACTIONS:
                # What has no records is not what such a fault waits for.
                if not records_ranges(buffers) or not fault.fires():
                    continue
                self._log_strike(fault, request)
            assert left is not None
            left = self.strikes.framed(fault, request, left)
            if left is None:
                return True
        if left is buffers:
            return False
        assert left is not None
        request.send(left)
        return True

    def _refuses(self, peer: str) -> bool:
        for fault in self.known():
            if fault.fault.action == "refuse_connections" and fault.fires():
                self._log_strike(fault, f"the connection from {peer}")
                return True
        return False

    def _remember(self, request: Request[Any], fault: ActiveFault) -> None:
        if len(self._pending) > FAULTS_MAX:
            gone = [known for known in self._pending if known.connection.is_closed]
            for each in gone:
                del self._pending[each]
        self._pending.setdefault(request, []).append(fault)

    def _is_let_alone(self, fault: ActiveFault, request: Request[Any]) -> bool:
        """Whether a fault is not about requests of this kind, or from another broker."""
        if fault.fault.action == "refuse_connections":
            return True
        if fault.fault.match.client_id is not None:
            return False
        return self._is_from_broker(request)

    def _is_from_broker(self, request: Request[Any]) -> bool:
        connection = request.connection
        if connection.is_broker or connection.challenge:
            return True
        if request.api_key == ApiKey.SASL_AUTHENTICATE:
            return bytes(request.body.auth_bytes) == MECHANISM
        if request.api_key == ApiKey.FETCH:
            body = request.body
            if max(body.replica_id, body.replica_state.replica_id) >= 0:
                return True
        client_id = request.client_id
        if not (client_id.isascii() and client_id.isdigit()):
            return False
        return int(client_id) in self._broker.metadata_cache.snapshot.alive_brokers

    def _log_strike(self, fault: ActiveFault, struck: Any) -> None:
        count = fault.strikes
        if count <= STRIKES_LOGGED or count % STRIKES_LOGGED == 0:
            logger.info(
                "fault %d strikes for the %s time, %s: %s",
                fault.number,
                ordinal(count),
                struck if isinstance(struck, str) else repr(struck),
                fault.fault,
            )
