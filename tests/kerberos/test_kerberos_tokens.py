"""Tokens by hand: whole, cut, changed, sent twice, of another mechanism, and without headers."""

from __future__ import annotations

import os
import select
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import gssapi
import pytest
from gssapi import MechType, Name, NameType, RequirementFlag, SecurityContext
from support.kdc import Kdc

from odradek.testing import Broker
from odradek.testing.process.broker_process import BrokerProcess

from .conftest import LISTENER, broker_settings

SECONDS = 60
HANDSHAKE, AUTHENTICATE, METADATA = 17, 36, 3
REFUSED = 58
INVALID = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism "
    "GSSAPI"
)
MUTUAL = RequirementFlag.mutual_authentication | RequirementFlag.integrity
ONE_WAY = RequirementFlag.integrity
SPNEGO = gssapi.OID.from_int_seq("1.3.6.1.5.5.2")
NO_LAYER = b"\x01\0\0\0"


class Answer(NamedTuple):
    """To SaslAuthenticate."""

    error: int
    message: str
    token: bytes


class ClosedError(Exception):
    """The broker has ended the connection."""


class Login:
    """One connection after its handshake; version 0 has tokens without headers follow."""

    def __init__(self, sock: socket.socket, version: int = 1) -> None:
        self._socket = sock
        name = struct.pack(">h6s", 6, b"GSSAPI")
        assert self._request(HANDSHAKE, version, name)[:2] == b"\0\0"

    def send(self, token: bytes) -> Answer:
        """Raises: ClosedError."""
        self.begin(token)
        return self.end()

    def end(self) -> Answer:
        """The answer to what was begun. Raises: ClosedError."""
        body = self._frame()[4:]
        error, size = struct.unpack_from(">hh", body)
        size = max(size, 0)
        return Answer(error, body[4 : 4 + size].decode(), body[8 + size :])

    def begin(self, token: bytes) -> None:
        """Send a token, and do not wait."""
        self._send(AUTHENTICATE, 0, struct.pack(">i", len(token)) + token)

    def has_answer(self) -> bool:
        return bool(select.select([self._socket], [], [], 0)[0])

    def send_bare(self, token: bytes) -> bytes:
        """Raises: ClosedError."""
        self._socket.sendall(struct.pack(">i", len(token)) + token)
        return self._frame()

    def is_logged_in(self) -> bool:
        """Whether it is told of brokers; a refusal names none."""
        try:
            answer = self._request(METADATA, 0, struct.pack(">i", 0))
            return bool(struct.unpack_from(">i", answer)[0])
        except (ClosedError, OSError):
            return False

    def _request(self, api_key: int, version: int, body: bytes) -> bytes:
        self._send(api_key, version, body)
        return self._frame()[4:]

    def _send(self, api_key: int, version: int, body: bytes) -> None:
        frame = struct.pack(">hhih", api_key, version, 7, -1) + body
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def _frame(self) -> bytes:
        head = self._socket.recv(4, socket.MSG_WAITALL)
        if len(head) < 4:
            raise ClosedError
        size: int = struct.unpack(">i", head)[0]
        return self._socket.recv(size, socket.MSG_WAITALL) if size else b""


@contextmanager
def login(broker: Broker | BrokerProcess, version: int = 1) -> Iterator[Login]:
    with socket.create_connection(("localhost", broker.port), SECONDS) as sock:
        yield Login(sock, version)


def context(
    credentials: Any,
    flags: RequirementFlag = MUTUAL,
    mech: Any = None,
    service: str = "kafka@localhost",
) -> Any:
    return SecurityContext(
        name=Name(service, NameType.hostbased_service),
        creds=credentials,
        usage="initiate",
        mech=mech or MechType.kerberos,
        flags=flags,
    )


def outcome(connection: Login, token: bytes) -> str:
    """What comes of a token that should not be taken."""
    try:
        answer = connection.send(token)
    except ClosedError:
        return "closed"
    if answer.error:
        assert (answer.error, answer.message, answer.token) == (REFUSED, INVALID, b"")
        assert not connection.is_logged_in()
        return "refused"
    return "taken"


def test_a_whole_login_with_proofs_of_both_sides(broker: Broker, credentials: Any) -> None:
    with login(broker) as connection:
        mine = context(credentials)
        assert not mine.step(connection.send(mine.step()).token)
        assert mine.complete
        offer = mine.unwrap(connection.send(b"").token).message
        assert offer == NO_LAYER
        assert connection.send(mine.wrap(NO_LAYER, False).message) == (0, "", b"")
        assert connection.is_logged_in()


def test_a_client_that_wants_no_proof_hears_of_layers_at_once(
    broker: Broker, credentials: Any
) -> None:
    with login(broker) as connection:
        mine = context(credentials, ONE_WAY)
        assert mine.unwrap(connection.send(mine.step()).token).message == NO_LAYER
        assert connection.send(mine.wrap(NO_LAYER, False).message) == (0, "", b"")
        assert connection.is_logged_in()


def test_a_login_whose_tokens_have_no_headers(broker: Broker, credentials: Any) -> None:
    with login(broker, version=0) as connection:
        mine = context(credentials)
        mine.step(connection.send_bare(mine.step()))
        assert mine.unwrap(connection.send_bare(b"")).message == NO_LAYER
        assert connection.send_bare(mine.wrap(NO_LAYER, False).message) == b""
        assert connection.is_logged_in()


def test_a_wrong_token_without_header_ends_the_connection(broker: Broker) -> None:
    with login(broker, version=0) as connection, pytest.raises(ClosedError):
        connection.send_bare(b"\x60\x05wrong")


def test_whom_a_client_wants_to_act_as_does_not_matter(broker: Broker, credentials: Any) -> None:
    """As in Kafka: whose the ticket is decides."""
    with login(broker) as connection:
        mine = context(credentials, ONE_WAY)
        connection.send(mine.step())
        wish = mine.wrap(NO_LAYER + b"carol@ODRADEK.TEST", False).message
        assert connection.send(wish) == (0, "", b"")
        assert connection.is_logged_in()
    assert "carol is" not in broker.log


def test_a_ticket_cut_anywhere_is_refused(broker: Broker, credentials: Any) -> None:
    whole = context(credentials).step()
    for size in [*range(0, len(whole), 16), len(whole) - 1]:
        with login(broker) as connection:
            assert outcome(connection, whole[:size]) == "refused", size


def test_a_changed_ticket_lets_nobody_in(broker: Broker, credentials: Any) -> None:
    """What stands in it without protection may change; nothing that matters does."""
    outcomes = []
    for position in range(0, len(context(credentials).step()), 8):
        token = bytearray(context(credentials).step())
        token[position] ^= 0x55
        with login(broker) as connection:
            outcomes.append(outcome(connection, bytes(token)))
            assert not connection.is_logged_in()
    assert outcomes.count("refused") > 0.9 * len(outcomes)


@pytest.mark.parametrize(
    "choice",
    [b"\x02\0\0\0", b"\x04\0\0\0", b"\x03\0\0\0", b"\0\0\0\0", b"\x01", b"", NO_LAYER + b"\xff"],
)
def test_a_choice_that_was_not_offered_is_refused(
    broker: Broker, credentials: Any, choice: bytes
) -> None:
    with login(broker) as connection:
        mine = context(credentials, ONE_WAY)
        connection.send(mine.step())
        assert outcome(connection, mine.wrap(choice, False).message) == "refused"


def test_a_changed_choice_is_refused(broker: Broker, credentials: Any) -> None:
    for position in range(32):
        if position == 6:
            continue  # of RFC 4121's rotation count: by this the token is rotated into itself
        with login(broker) as connection:
            mine = context(credentials, ONE_WAY)
            connection.send(mine.step())
            token = bytearray(mine.wrap(NO_LAYER, False).message)
            assert len(token) == 32
            token[position] ^= 0x55
            assert outcome(connection, bytes(token)) == "refused", position


def test_bytes_where_none_are_expected_are_refused(broker: Broker, credentials: Any) -> None:
    with login(broker) as connection:
        mine = context(credentials)
        mine.step(connection.send(mine.step()).token)
        assert outcome(connection, mine.wrap(NO_LAYER, False).message) == "refused"


def test_a_recorded_login_cannot_be_sent_again(broker: Broker, credentials: Any) -> None:
    with login(broker) as connection:
        mine = context(credentials, ONE_WAY)
        ticket = mine.step()
        connection.send(ticket)
        connection.send(mine.wrap(NO_LAYER, False).message)
        assert connection.is_logged_in()
    with login(broker) as connection:
        assert outcome(connection, ticket) == "refused"
    assert "a login by GSSAPI failed: Request is a replay" in broker.log


def test_kerberos_within_another_mechanism_is_refused(broker: Broker, credentials: Any) -> None:
    with login(broker) as connection:
        assert outcome(connection, context(credentials, mech=SPNEGO).step()) == "refused"


@pytest.mark.parametrize(
    "token", [b"", b"\0", b"\x60", b"\x60\x84\xff\xff\xff\xff", b"x" * 100_000]
)
def test_what_is_no_token_is_refused(broker: Broker, token: bytes) -> None:
    with login(broker) as connection:
        assert outcome(connection, token) == "refused"


def test_a_token_may_not_be_longer_than_sasls_frames(broker: Broker) -> None:
    with login(broker) as connection, pytest.raises((ClosedError, OSError)):
        connection.send(b"x" * 600_000)
    assert "sasl.server.max.receive.size" in broker.log


def test_others_are_served_while_a_login_waits_for_the_keytab(
    kdc: Kdc, credentials: Any, tmp_path: Path
) -> None:
    """The keytab becomes a pipe: whoever reads it waits until somebody writes."""
    keytab = tmp_path / "kafka.keytab"
    keys = kdc.keytab("kafka/localhost").read_bytes()
    keytab.write_bytes(keys)
    settings = broker_settings(kdc)
    entry = f"{LISTENER}.gssapi.sasl.jaas.config"
    settings[entry] = settings[entry].replace(str(kdc.keytab("kafka/localhost")), str(keytab))
    with Broker(settings) as broker, login(broker) as waiting:
        keytab.unlink()
        os.mkfifo(keytab)
        waiting.begin(context(credentials).step())
        with keytab.open("wb") as pipe:  # is there once the login reads
            with login(broker):
                pass  # whose handshake was answered meanwhile
            assert not waiting.has_answer()
            pipe.write(keys)
        assert waiting.end().error in (0, REFUSED)
