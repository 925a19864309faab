"""A delegation token's life: made, renewed up to its greatest age, ended; and who may do what."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable

import pytest

from odradek.common.delegation_token import DelegationToken
from odradek.common.errors import ErrorCode, KafkaError
from odradek.protocol.sasl.scram import (
    SCRAM_MECHANISMS,
    SHA_512,
    ClientFinal,
    ClientFirst,
    ScramExchange,
    ServerFirst,
)
from odradek.runtime.clock import ManualClock
from odradek.security.authenticator.scram import ScramServerExchange
from odradek.security.authenticator.scram_credentials import ScramCredentials
from odradek.security.token.delegation_tokens import DelegationTokens

NOW = 1_700_000_000_000
MAX_MS, EXPIRY_MS = 10_000, 4_000
ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"


class Case:
    """The tokens of one broker, one of them alice's, which bob may renew."""

    def __init__(self) -> None:
        self.clock = ManualClock(NOW)
        self.tokens = DelegationTokens("key", MAX_MS, EXPIRY_MS, self.clock.now_ms)
        self.token = self.tokens.create("id", ALICE, CAROL, (BOB,), -1)
        self.tokens.put(self.token)


def code_of(call: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        call()
    return ErrorCode(raised.value.code)


@pytest.mark.parametrize(
    ("requested", "age", "life"),
    [(-1, 10_000, 4_000), (0, 10_000, 4_000), (3_000, 3_000, 3_000), (99_999, 10_000, 4_000)],
)
def test_a_token_lives_as_long_as_requested_and_allowed(
    requested: int, age: int, life: int
) -> None:
    token = Case().tokens.create("x", ALICE, BOB, (), requested)
    assert token == DelegationToken("x", ALICE, BOB, (), NOW, NOW + age, NOW + life)


def test_its_secret_is_an_hmac_of_its_id() -> None:
    case = Case()
    secret = hmac.new(b"key", b"id", hashlib.sha512).digest()
    assert case.tokens.hmac("id") == secret
    assert case.tokens.token_id(secret) == "id"
    not_found = code_of(lambda: case.tokens.token_id(secret[:-1]))
    assert not_found == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    case.tokens.remove("id")
    assert code_of(lambda: case.tokens.token_id(secret)) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_renewals_reach_to_its_greatest_age_and_no_further() -> None:
    case = Case()
    token = case.token
    for principal, period, at, expected in (
        (ALICE, -1, 1_000, 5_000),
        (BOB, 2_000, 3_000, 5_000),
        (BOB, 99_999, 4_000, 8_000),
        (ALICE, 4_000, 7_000, 10_000),
    ):
        case.clock.set_wall_clock(NOW + at)
        token = case.tokens.renewed(token, principal, period)
        assert token.expiry_ms == NOW + expected
    case.clock.set_wall_clock(NOW + 10_001)
    late = code_of(lambda: case.tokens.renewed(token, ALICE, -1))
    assert late == ErrorCode.DELEGATION_TOKEN_EXPIRED


def test_who_is_neither_owner_nor_renewer_changes_nothing() -> None:
    """Not even the requester."""
    case = Case()
    for call in (
        lambda: case.tokens.renewed(case.token, CAROL, -1),
        lambda: case.tokens.expired(case.token, CAROL, -1),
    ):
        assert code_of(call) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


def test_an_end_is_set_or_comes_at_once() -> None:
    case = Case()
    ended = case.tokens.expired(case.token, BOB, 1_000)
    assert ended is not None
    assert ended.expiry_ms == NOW + 1_000
    longest = case.tokens.expired(case.token, ALICE, 2**62)
    assert longest is not None
    assert longest.expiry_ms == NOW + MAX_MS
    case.clock.set_wall_clock(NOW + EXPIRY_MS + 1)
    late = code_of(lambda: case.tokens.expired(case.token, ALICE, 1))
    assert late == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert case.tokens.expired(case.token, ALICE, -1) is None
    assert case.tokens.dead == [case.token]


def login(case: Case, password: str, *, is_token: bool = True) -> ScramServerExchange:
    """A client's whole exchange with the broker."""
    credentials = ScramCredentials()
    credentials.find_token = case.tokens.credential
    exchange = ScramServerExchange(SHA_512, credentials.finder(SHA_512), bytes)
    first = ClientFirst("id", "nonce", extensions={"tokenauth": "true"} if is_token else {})
    answer = exchange.evaluate(first.encode())
    server_first = ServerFirst.decode(answer)
    salted = SHA_512.salted_password(password, server_first.salt, server_first.iterations)
    without_proof = f"c=biws,r={server_first.nonce}"
    proof = ScramExchange(SHA_512, first.bare, answer, without_proof).proof(salted)
    exchange.evaluate(ClientFinal(server_first.nonce, proof, without_proof, b"n,,").encode())
    return exchange


def test_it_logs_its_owner_in_by_its_hmac_until_it_ends() -> None:
    case = Case()
    secret = base64.b64encode(case.tokens.hmac("id")).decode()
    done = login(case, secret).login
    assert done is not None
    assert done == ("alice", NOW + EXPIRY_MS, True)
    with pytest.raises(Exception, match="Invalid client credentials"):
        login(case, secret[:-4] + "AAA=")
    with pytest.raises(Exception, match="there is no SCRAM-SHA-512 credential"):
        login(case, secret, is_token=False)
    case.clock.set_wall_clock(NOW + EXPIRY_MS + 1)
    with pytest.raises(Exception, match="there is no SCRAM-SHA-512 credential"):
        login(case, secret)


def test_a_removed_token_logs_nobody_in() -> None:
    case = Case()
    for mechanism in SCRAM_MECHANISMS.values():
        assert case.tokens.credential(mechanism, "id") is not None
    case.tokens.remove("id")
    for mechanism in SCRAM_MECHANISMS.values():
        assert case.tokens.credential(mechanism, "id") is None
