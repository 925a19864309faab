"""Access tokens: which are taken, and what a client hears of the others."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import jwt
import pytest
import trio
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from odradek.client.security.oauthbearer import token_source
from odradek.protocol.sasl.oauthbearer import FAILURE_NOTED, OAuthBearerMessage
from odradek.runtime.clock import ManualClock
from odradek.security.authenticator.access_token import (
    TOKEN_CHARACTERS_MAX,
    AccessTokenError,
    SignedTokenValidator,
    TokenRules,
    UnsecuredTokenValidator,
)
from odradek.security.authenticator.exchange import Login, RefusedError
from odradek.security.authenticator.jwks import (
    UNKNOWN_KEY_MS,
    JsonWebKeys,
    JwksSettings,
    RefreshedKeys,
)
from odradek.security.authenticator.oauthbearer import OAuthBearerExchange

NOW = 1_700_000_000
RULES = TokenRules(("kafka", "odradek"), "https://issuer", 30_000, "scope", "sub")
CLAIMS: Mapping[str, object] = {
    "sub": "alice",
    "aud": "kafka",
    "iss": "https://issuer",
    "iat": NOW,
    "exp": NOW + 600,
}
RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_KEY = rsa.generate_private_key(65537, 2048)


def key_set(**others: str) -> bytes:
    rsa_key = jwt.algorithms.RSAAlgorithm.to_jwk(RSA_KEY.public_key(), as_dict=True)
    ec_key = jwt.algorithms.ECAlgorithm.to_jwk(EC_KEY.public_key(), as_dict=True)
    keys = [{**rsa_key, "kid": "one", **others}, {**ec_key, "kid": "two"}, {"kty": "strange"}, 7]
    return json.dumps({"keys": keys}).encode()


def signed(
    claims: Mapping[str, object], key: object = RSA_KEY, algorithm: str = "RS256", kid: str = "one"
) -> str:
    headers = {"kid": kid} if kid else {}
    return jwt.encode(dict(claims), key, algorithm, headers)  # type: ignore[arg-type]  # keys of each kind, and strange ones


def validator(rules: TokenRules = RULES) -> SignedTokenValidator:
    return SignedTokenValidator(
        JsonWebKeys.decode(key_set()).verified_payload, rules, lambda: NOW * 1000
    )


def test_a_signed_token_names_its_subject_and_its_end() -> None:
    expected = Login("alice", (NOW + 600) * 1000)
    for token in (
        signed(CLAIMS),
        signed(CLAIMS, kid=""),
        signed(CLAIMS, algorithm="PS512"),
        signed(CLAIMS, EC_KEY, "ES256", "two"),
        signed({**CLAIMS, "aud": ["x", "odradek"], "scope": ["a", "b"], "nbf": NOW + 29}),
    ):
        assert validator()(token) == expected
    late = signed({**CLAIMS, "iat": NOW - 900, "exp": NOW - 29})
    assert validator()(late) == Login("alice", (NOW - 29) * 1000)


PUBLIC_PEM = RSA_KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)


def unsigned(header: object, claims: object, signature: str = "") -> str:
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()) for part in (header, claims))
    return ".".join([*(part.rstrip(b"=").decode() for part in parts), signature])


def hmac_with_public_key() -> str:
    """The classic attack: the public key, which all know, as the secret of HMAC."""
    import hashlib
    import hmac

    body = unsigned({"alg": "HS256", "kid": "one"}, dict(CLAIMS)).rstrip(".")
    digest = hmac.digest(PUBLIC_PEM, body.encode(), hashlib.sha256)
    return f"{body}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


DEEP = base64.urlsafe_b64encode(b"[" * 20_000).decode().rstrip("=")


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (unsigned({"alg": "none"}, dict(CLAIMS)), "algorithm is none"),
        (unsigned({"alg": ["RS256"]}, dict(CLAIMS)), "algorithm is none|not a JWT"),
        (unsigned({"alg": "none", "kid": 7}, dict(CLAIMS)), "not a JWT"),
        (hmac_with_public_key(), "no key"),
        (signed(CLAIMS, OTHER_KEY), "signature is wrong"),
        (signed(CLAIMS, OTHER_KEY, kid="three"), "no key"),
        (signed(CLAIMS, EC_KEY, "ES256", "one"), "no key"),
        (signed(CLAIMS)[:-6] + "AAAAAA", "signature is wrong"),
        (f"{signed(CLAIMS).rpartition('.')[0]}.", "signature is wrong"),
        (signed({**CLAIMS, "exp": NOW - 30}), "expired"),
        (signed({**CLAIMS, "exp": NOW, "iat": NOW + 1}), "before it was issued"),
        (signed({**CLAIMS, "nbf": NOW + 31}), "may not be used yet"),
        (signed({**CLAIMS, "nbf": NOW + 20, "exp": NOW + 10}), "before it may be used"),
        (signed({**CLAIMS, "aud": "other"}), "audience"),
        (signed({**CLAIMS, "aud": {"kafka": 1}}), "audience"),
        (signed({key: CLAIMS[key] for key in CLAIMS if key != "aud"}), "audience"),
        (signed({**CLAIMS, "iss": "https://else"}), "issuer"),
        (signed({key: CLAIMS[key] for key in CLAIMS if key != "exp"}), "no expiration"),
        (signed({key: CLAIMS[key] for key in CLAIMS if key != "iat"}), "no time of issue"),
        (signed({**CLAIMS, "exp": True}), "exp claim is not a number"),
        (signed({**CLAIMS, "exp": 1e300}), "exp claim is not a time"),
        (signed({**CLAIMS, "exp": float("inf")}), "exp claim is not a time"),
        (signed({**CLAIMS, "exp": -1}), "exp claim is not a time"),
        (signed({**CLAIMS, "sub": " "}), "sub claim names nobody"),
        (signed({**CLAIMS, "sub": None}), "sub claim names nobody"),
        (signed({**CLAIMS, "scope": ["a", "a"]}), "repeats"),
        (signed({**CLAIMS, "scope": 7}), "scope claim"),
        (signed({**CLAIMS, "sub": "x" * TOKEN_CHARACTERS_MAX}), "characters"),
        (f"{DEEP}.{DEEP}.AAAA", "not a JWT"),
        ("...", "not a JWT"),
        ("a.b", "not a JWT"),
        ("", "not a JWT"),
    ],
)
def test_tokens_that_are_refused(token: str, why: str) -> None:
    with pytest.raises(AccessTokenError, match=why) as raised:
        validator()(token)
    assert raised.value.status == "invalid_token"
    assert not token or token not in str(raised.value)


def test_a_token_with_an_audience_needs_an_expected_one() -> None:
    anybody = validator(RULES._replace(audiences=(), issuer=None))
    without = {key: CLAIMS[key] for key in CLAIMS if key not in ("aud", "iss")}
    assert anybody(signed(without)).name == "alice"
    with pytest.raises(AccessTokenError, match="audience"):
        anybody(signed(CLAIMS))


def test_a_key_is_used_for_what_it_is_for() -> None:
    for others in ({"use": "enc"}, {"alg": "RS512"}):
        keys = JsonWebKeys.decode(key_set(**others))
        with pytest.raises(AccessTokenError, match="no key"):
            keys.verified_payload(signed(CLAIMS))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"null",
        b'{"keys": 1}',
        b'{"keys": []}',
        b'{"keys":' + b"[" * 9999,
        b"\xff",
    ],
)
def test_a_set_of_keys_that_is_none(data: bytes) -> None:
    with pytest.raises(ValueError, match="it "):
        JsonWebKeys.decode(data)


# --- The exchange ----------------------------------------------------------------------------


def test_a_client_hears_of_a_refusal_in_two_steps_as_with_kafka() -> None:
    exchange = OAuthBearerExchange(validator())
    heard = exchange.evaluate(OAuthBearerMessage(signed({**CLAIMS, "aud": "x"})).encode())
    assert heard == b'{"status":"invalid_token"}'
    with pytest.raises(RefusedError) as raised:
        exchange.evaluate(FAILURE_NOTED)
    assert str(raised.value) == '{"status":"invalid_token"}'
    assert exchange.login is None


def test_who_logs_in_may_name_only_itself() -> None:
    with pytest.raises(RefusedError, match=r"authorization id \(bob\)"):
        OAuthBearerExchange(validator()).evaluate(
            OAuthBearerMessage(signed(CLAIMS), {}, "bob").encode()
        )
    exchange = OAuthBearerExchange(validator())
    assert exchange.evaluate(OAuthBearerMessage(signed(CLAIMS), {}, "alice").encode()) == b""
    assert exchange.login is not None
    assert exchange.login.name == "alice"


# --- Unsecured -------------------------------------------------------------------------------


def unsecured(**options: str) -> UnsecuredTokenValidator:
    return UnsecuredTokenValidator(
        {f"unsecuredValidator{name}": text for name, text in options.items()}, lambda: NOW * 1000
    )


def made(**options: str) -> str:
    """As a client makes it up."""
    named = {f"unsecuredLogin{name}": text for name, text in options.items()}

    async def run() -> str:
        source = token_source(lambda name: None, named, Path("/").joinpath, lambda: NOW * 1000)  # type: ignore[arg-type]  # reads nothing
        return await source()

    return trio.run(run)


def test_an_unsecured_token_is_whoever_it_says_it_is() -> None:
    assert unsecured()(made(StringClaim_sub="alice", LifetimeSeconds="60")) == Login(
        "alice", (NOW + 60) * 1000
    )
    token = made(PrincipalClaimName="who", StringClaim_who="bob", ListClaim_roles="|a|b")
    taken = unsecured(PrincipalClaimName="who", ScopeClaimName="roles", RequiredScope="b a")
    assert taken(token).name == "bob"


def test_an_unsecured_token_that_lacks_a_scope_hears_which() -> None:
    token = made(StringClaim_sub="alice", StringClaim_scope="read write")
    assert unsecured(RequiredScope="read")(token).name == "alice"
    exchange = OAuthBearerExchange(unsecured(RequiredScope="read admin"))
    heard = exchange.evaluate(OAuthBearerMessage(token).encode())
    assert heard == b'{"status":"insufficient_scope", "scope":"[read, admin]"}'


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (signed(CLAIMS), "not an unsecured JWT"),
        (unsigned({"alg": "RS256"}, dict(CLAIMS)), "not none"),
        (unsigned({"alg": "none"}, {**CLAIMS, "exp": NOW}), "expired"),
        (unsigned({"alg": "none"}, {**CLAIMS, "iat": NOW + 1}), "in the future"),
        (unsigned({"alg": "none"}, {**CLAIMS, "sub": 7}), "names nobody"),
        (unsigned({"alg": "none"}, {"sub": "alice"}), "no expiration"),
        (unsigned({"alg": "none"}, []), "not a JSON object"),
        (f"{DEEP}.{DEEP}.", "not JSON"),
        ("!.!.", "not base64url"),
    ],
)
def test_unsecured_tokens_that_are_refused(token: str, why: str) -> None:
    with pytest.raises(AccessTokenError, match=why):
        unsecured()(token)


# --- Keys that change ------------------------------------------------------------------------


def keys_at(url: str, clock: ManualClock) -> RefreshedKeys:
    return RefreshedKeys(JwksSettings(url, 3_600_000, 1, 10), clock)


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("file:///nowhere/keys.json", "/nowhere/keys.json cannot be read"),
        ("ftp://host/keys", "not a URL of http, https or file"),
        ("https:///keys", "not a URL"),
        ("keys.json", "not a URL"),
    ],
)
def test_a_url_that_cannot_be_used(url: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        keys_at(url, ManualClock())


class Provider:
    """An identity provider over HTTP: its keys, which may fail to come, and how often they were."""

    def __init__(self) -> None:
        self.answers: list[bytes] = []
        self.requests_count = 0
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.requests_count += 1
                answer = provider.answers[0]
                if len(provider.answers) > 1:
                    provider.answers.pop(0)
                self.send_response(200 if answer else 503)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/keys"


async def test_keys_are_fetched_again_until_they_come_and_when_one_is_missing() -> None:
    provider, clock = Provider(), ManualClock()
    provider.answers = [b"", b"no keys", b'{"keys": [{"kty": "RSA"}]}', key_set()]
    thread = Thread(target=provider.server.serve_forever, daemon=True)
    thread.start()
    keys = keys_at(provider.url, clock)
    token = signed(CLAIMS)
    with pytest.raises(AccessTokenError, match="not been fetched yet"):
        keys.verified_payload(token)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(keys.run)
            reasons = []
            while True:
                try:
                    payload = keys.verified_payload(token)
                    break
                except AccessTokenError as error:
                    reasons.append(str(error))
                    clock.advance(1000)
                    await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    assert json.loads(payload) == CLAIMS
    assert any("no key of" in each for each in reasons)
    assert provider.requests_count == 4
    assert UNKNOWN_KEY_MS > 1000
    provider.server.shutdown()
    provider.server.server_close()
    thread.join()
