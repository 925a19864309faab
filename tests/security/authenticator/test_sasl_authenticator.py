"""One connection's logins: what may come when, what is answered, and when a login ends."""

from __future__ import annotations

import base64
from functools import partial

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ProtocolError
from odradek.protocol.sasl.plain import PlainMessage
from odradek.protocol.sasl.scram import (
    SHA_256,
    ClientFinal,
    ClientFirst,
    ScramExchange,
    ServerFinal,
    ServerFirst,
)
from odradek.security.authenticator.exchange import Login, RefusedError
from odradek.security.authenticator.plain import PlainExchange
from odradek.security.authenticator.sasl_authenticator import (
    REAUTHENTICATION_MS_MIN,
    SaslAuthenticator,
    SaslMechanisms,
    SaslState,
    UnexpectedRequestError,
)
from odradek.security.authenticator.scram import KnownCredential, ScramServerExchange
from odradek.security.authenticator.scram_credentials import ScramCredentials

USERS = {"alice": "wonderland", "bob": "builder"}
ALICE = PlainMessage("", "alice", "wonderland").encode()
BOB = PlainMessage("", "bob", "builder").encode()
WALL_MS = 1_700_000_000_000


class Expiring(PlainExchange):
    """PLAIN whose logins end at a time, as tokens' do."""

    def evaluate(self, token: bytes) -> bytes:
        answer = super().evaluate(token)
        assert self.login is not None
        self.login = Login(self.login.name, WALL_MS + 700)
        return answer


def credentials() -> ScramCredentials:
    found = ScramCredentials()
    found.change("alice", {"SCRAM-SHA-256": SHA_256.credential("pencil", b"salt", 4096).encode()})
    return found


def authenticator(**max_reauth_ms: int) -> SaslAuthenticator:
    exchanges = {
        "PLAIN": partial(PlainExchange, USERS),
        "EXPIRING": partial(Expiring, USERS),
        "SCRAM-SHA-256": partial(
            ScramServerExchange, SHA_256, credentials().finder(SHA_256), lambda size: bytes(size)
        ),
    }
    return SaslAuthenticator(SaslMechanisms(exchanges, max_reauth_ms, 100), lambda: WALL_MS)


def test_only_versions_and_a_handshake_may_come_first() -> None:
    for api_key in ApiKey:
        made = authenticator()
        if api_key in (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE):
            made.check(api_key, 0)
            continue
        with pytest.raises(ProtocolError, match=f"unexpected request {api_key.name}"):
            made.check(api_key, 0)
    with pytest.raises(ProtocolError, match="unexpected request key 3333"):
        authenticator().check(3333, 0)


def test_versions_are_asked_for_once_and_only_a_handshake_follows() -> None:
    made = authenticator()
    made.note_api_versions()
    for api_key in set(ApiKey) - {ApiKey.SASL_HANDSHAKE}:
        with pytest.raises(ProtocolError):
            made.check(api_key, 0)
    made.check(ApiKey.SASL_HANDSHAKE, 0)


def test_plain_gives_a_principal_and_then_anything_may_come() -> None:
    made = authenticator()
    assert made.handshake("PLAIN", 1, 0)
    made.check(ApiKey.SASL_AUTHENTICATE, 0)
    with pytest.raises(UnexpectedRequestError, match="of type METADATA during SASL authentication"):
        made.check(ApiKey.METADATA, 0)
    assert made.authenticate(ALICE, 0) == (b"", 0)
    assert made.principal == "User:alice"
    assert made.never_expires
    for api_key in ApiKey:
        made.check(api_key, 10**9)


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0wonderland", "Authentication failed: Invalid username or password"),
        (b"\0\0wonderland", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"alice\0wonderland", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"a\0alice\0b\0c\0d", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (
            b"bob\0alice\0wonderland",
            "Authentication failed: Client requested an authorization id that is different from "
            "username",
        ),
    ],
)
def test_refusals_of_plain_say_what_kafkas_say(token: bytes, text: str) -> None:
    made = authenticator()
    made.handshake("PLAIN", 1, 0)
    with pytest.raises(RefusedError) as raised:
        made.authenticate(token, 0)
    assert str(raised.value) == text
    assert made.state is SaslState.FAILED
    assert not made.principal
    with pytest.raises(ProtocolError):
        made.check(ApiKey.SASL_AUTHENTICATE, 0)


def scram(made: SaslAuthenticator, name: str, password: str) -> str:
    """Log in as a client does; returns the server's last message."""
    assert made.handshake("SCRAM-SHA-256", 1, 0)
    first = ClientFirst(name, "nonce")
    server_first = ServerFirst.decode(made.authenticate(first.encode(), 0).token)
    assert server_first.nonce.startswith("nonce")
    salted = SHA_256.salted_password(password, server_first.salt, server_first.iterations)
    without_proof = f"c=biws,r={server_first.nonce}"
    exchange = ScramExchange(SHA_256, first.bare, server_first.encode(), without_proof)
    final = ClientFinal(server_first.nonce, exchange.proof(salted), without_proof, b"n,,")
    answer = ServerFinal.decode(made.authenticate(final.encode(), 0).token)
    assert answer.signature == exchange.server_signature_of_salted(salted)
    return made.principal


def test_scram_gives_a_principal_and_proves_the_server() -> None:
    assert scram(authenticator(), "alice", "pencil") == "User:alice"


INVALID = "Authentication failed during authentication due to invalid credentials with SASL "


@pytest.mark.parametrize(("name", "password"), [("alice", "pen"), ("nobody", "pencil")])
def test_scram_does_not_tell_a_wrong_name_from_a_wrong_password(name: str, password: str) -> None:
    with pytest.raises(RefusedError) as raised:
        scram(authenticator(), name, password)
    assert str(raised.value) == f"{INVALID}mechanism SCRAM-SHA-256"


def begun(first: ClientFirst) -> tuple[SaslAuthenticator, ServerFirst]:
    made = authenticator()
    made.handshake("SCRAM-SHA-256", 1, 0)
    return made, ServerFirst.decode(made.authenticate(first.encode(), 0).token)


def last_message(
    first: ClientFirst, server_first: ServerFirst, nonce: str, channel: bytes = b"n,,"
) -> ClientFinal:
    """One whose proof is right for all that was said, by somebody who knows the password."""
    salted = SHA_256.salted_password("pencil", server_first.salt, server_first.iterations)
    without_proof = f"c={base64.b64encode(channel).decode()},r={nonce}"
    exchange = ScramExchange(SHA_256, first.bare, server_first.encode(), without_proof)
    return ClientFinal(nonce, exchange.proof(salted), without_proof, channel)


FIRST = ClientFirst("alice", "nonce")


@pytest.mark.parametrize("change", ["other", "nonce", "{}x", "x{}"])
def test_scram_takes_no_other_nonce_back(change: str) -> None:
    made, server_first = begun(FIRST)
    final = last_message(FIRST, server_first, change.format(server_first.nonce))
    with pytest.raises(RefusedError, match="invalid credentials"):
        made.authenticate(final.encode(), 0)


@pytest.mark.parametrize("channel", [b"", b"y,,", b"n,a=bob,", b"p=tls-unique,,"])
def test_scram_takes_no_other_header_back(channel: bytes) -> None:
    made, server_first = begun(FIRST)
    with pytest.raises(RefusedError, match="invalid credentials"):
        made.authenticate(
            last_message(FIRST, server_first, server_first.nonce, channel).encode(), 0
        )


def malformed(final: ClientFinal) -> dict[str, bytes]:
    """Last messages that are nearly right."""
    right, start = final.encode(), final.without_proof.encode()
    proof = base64.b64encode(final.proof)
    return {
        "nothing": b"",
        "the first again": FIRST.encode(),
        "no proof": start,
        "an empty proof": start + b",p=",
        "a short proof": start + b",p=" + base64.b64encode(final.proof[:-1]),
        "a long proof": start + b",p=" + base64.b64encode(final.proof + b"x"),
        "the proof of another hash": start + b",p=" + base64.b64encode(final.proof * 2),
        "no base64": start + b",p=" + proof[:-1] + b"*",
        "a proof of zeros": start + b",p=" + base64.b64encode(bytes(32)),
        "something after the proof": right + b",x=y",
        "the proof first": b"p=" + proof + b"," + start,
        "an extension that was not signed": start + b",x=y,p=" + proof,
        "a mandatory extension": b"m=x," + right,
        "two nonces": start + b",r=x,p=" + proof,
        "a NUL": right + b"\0",
        "not ASCII": right.replace(b"r=", b"r=\xff", 1),
        "very long": start + b",x=" + b"y" * 500_000 + b",p=" + proof,
    }


@pytest.mark.parametrize("kind", malformed(ClientFinal("r", b"p", "c=biws,r=r", b"n,,")))
def test_last_messages_that_are_nearly_right_let_nobody_in(kind: str) -> None:
    made, server_first = begun(FIRST)
    right = last_message(FIRST, server_first, server_first.nonce)
    with pytest.raises(RefusedError) as raised:
        made.authenticate(malformed(right)[kind], 0)
    assert str(raised.value) == f"{INVALID}mechanism SCRAM-SHA-256"
    assert made.state is SaslState.FAILED
    assert made.principal == ""
    with pytest.raises(ProtocolError):  # nor is there a second attempt
        made.authenticate(right.encode(), 0)


def test_the_same_last_message_without_a_fault_lets_in() -> None:
    made, server_first = begun(FIRST)
    made.authenticate(last_message(FIRST, server_first, server_first.nonce).encode(), 0)
    assert made.principal == "User:alice"


def test_the_proof_of_another_login_lets_nobody_in() -> None:
    exchange = partial(ScramServerExchange, SHA_256, credentials().finder(SHA_256))
    nonces = iter((b"1" * 24, b"2" * 24))
    finals = []
    for _ in range(2):
        made = SaslAuthenticator(
            SaslMechanisms({"SCRAM-SHA-256": lambda: exchange(lambda size: next(nonces))}, {}, 0),
            lambda: WALL_MS,
        )
        made.handshake("SCRAM-SHA-256", 1, 0)
        server_first = ServerFirst.decode(made.authenticate(FIRST.encode(), 0).token)
        finals.append(last_message(FIRST, server_first, server_first.nonce).encode())
    with pytest.raises(RefusedError, match="invalid credentials"):
        made.authenticate(finals[0], 0)


def test_too_few_iterations_are_refused() -> None:
    weak = SHA_256.credential("pencil", b"salt", 4095)
    exchange = ScramServerExchange(
        SHA_256, lambda name, is_token: KnownCredential(weak, Login(name)), bytes
    )
    made = SaslAuthenticator(
        SaslMechanisms({"SCRAM-SHA-256": lambda: exchange}, {}, 0), lambda: WALL_MS
    )
    made.handshake("SCRAM-SHA-256", 1, 0)
    with pytest.raises(RefusedError, match="invalid credentials"):
        made.authenticate(ClientFirst("alice", "nonce").encode(), 0)


def test_a_mechanism_that_is_not_enabled_ends_the_connection() -> None:
    made = authenticator()
    assert not made.handshake("GSSAPI", 1, 0)
    assert made.state is SaslState.FAILED
    assert made.enabled_mechanisms == ["PLAIN", "EXPIRING", "SCRAM-SHA-256"]


@pytest.mark.parametrize(
    ("mechanism", "max_reauth_ms", "lifetime_ms"),
    [("PLAIN", 0, 0), ("PLAIN", 500, 500), ("EXPIRING", 0, 700), ("EXPIRING", 500, 500)],
)
def test_a_login_holds_as_long_as_settings_and_credentials_say(
    mechanism: str, max_reauth_ms: int, lifetime_ms: int
) -> None:
    made = authenticator(**{mechanism: max_reauth_ms})
    made.handshake(mechanism, 1, 0)
    assert made.authenticate(ALICE, 1000).session_lifetime_ms == lifetime_ms
    assert made.never_expires == (lifetime_ms == 0)
    if lifetime_ms:
        made.check(ApiKey.FETCH, 1000 + lifetime_ms)
        with pytest.raises(ProtocolError, match="login of User:alice has expired"):
            made.check(ApiKey.FETCH, 1001 + lifetime_ms)
        made.check(ApiKey.SASL_HANDSHAKE, 1001 + lifetime_ms)


def test_another_login_renews_the_first_one() -> None:
    made = authenticator(PLAIN=500)
    made.handshake("PLAIN", 1, 0)
    made.authenticate(ALICE, 0)
    assert made.may_begin(400)
    assert made.handshake("PLAIN", 1, 400)
    made.authenticate(ALICE, 450)
    made.check(ApiKey.FETCH, 950)
    assert not made.may_begin(400 + REAUTHENTICATION_MS_MIN - 1)
    assert made.may_begin(400 + REAUTHENTICATION_MS_MIN)


def test_a_login_that_holds_for_ever_is_not_begun_again() -> None:
    made = authenticator()
    made.handshake("PLAIN", 1, 0)
    made.authenticate(ALICE, 0)
    assert made.state is SaslState.AUTHENTICATED
    assert not made.may_begin(REAUTHENTICATION_MS_MIN)


def test_another_login_may_not_change_who_it_is_nor_how() -> None:
    made = authenticator()
    made.handshake("PLAIN", 1, 0)
    made.authenticate(ALICE, 0)
    made.handshake("PLAIN", 1, 0)
    with pytest.raises(RefusedError, match="Cannot change principals"):
        made.authenticate(BOB, 0)
    assert made.principal == "User:alice"
    made = authenticator()
    made.handshake("PLAIN", 1, 0)
    made.authenticate(ALICE, 0)
    made.handshake("SCRAM-SHA-256", 1, 0)
    with pytest.raises(ProtocolError, match="Cannot change SASL mechanism"):
        made.authenticate(ALICE, 0)
    assert made.state is SaslState.FAILED


def test_a_failed_second_login_is_called_so() -> None:
    made = authenticator()
    made.handshake("SCRAM-SHA-256", 1, 0)
    scram_again = authenticator()
    scram(scram_again, "alice", "pencil")
    scram_again.handshake("SCRAM-SHA-256", 1, 0)
    with pytest.raises(RefusedError, match="during re-authentication due to"):
        scram_again.authenticate(b"nonsense", 0)


def test_after_version_0_of_the_handshake_tokens_come_bare_until_the_login() -> None:
    made = authenticator()
    made.handshake("PLAIN", 0, 0)
    assert made.takes_bare_tokens
    made.authenticate(ALICE, 0)
    assert not made.takes_bare_tokens


def test_credentials_follow_the_store() -> None:
    found = credentials()
    find = found.finder(SHA_256)
    assert find("alice", False) is not None
    assert find("alice", True) is None
    found.change("alice", {"SCRAM-SHA-256": "broken", "consumer_byte_rate": "1"})
    assert find("alice", False) is None
    assert not found.users
