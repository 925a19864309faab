"""Access tokens that are JWTs: what their claims must say, signed or, for development, unsecured.

The rules of signed ones are those of Kafka's BrokerJwtValidator, of which jose4j enforces some;
those of unsecured ones are OAuthBearerUnsecuredValidatorCallbackHandler's. PyJWT does the
cryptography; claims are checked here, against the broker's clock.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from .exchange import Login

Claims = Mapping[str, object]

TOKEN_CHARACTERS_MAX: Final = 64 * 1024
"""Of a token that is looked at: what is longer no identity provider issues."""

UNSECURED_PREFIX: Final = "unsecuredValidator"
SECONDS_MAX: Final = 2**53
"""Of a time in a claim."""


class AccessTokenError(Exception):
    """A token may not be used; the text is for this side's log, and repeats no token.

    Attributes:
        status: what the client hears, in RFC 6750's words.
        scope: that it lacks, if that is what is wrong.
    """

    def __init__(self, sentence: str, scope: str | None = None) -> None:
        super().__init__(sentence)
        self.status = "invalid_token" if scope is None else "insufficient_scope"
        self.scope = scope


class TokenRules(NamedTuple):
    """What the claims of a signed token must say.

    Attributes:
        audiences: of which the token must name one (`sasl.oauthbearer.expected.audience`); none: it
            must name no audience at all, as jose4j has it.
        issuer: that it must name (`sasl.oauthbearer.expected.issuer`); None: any.
        clock_skew_ms: by which clocks may differ (`sasl.oauthbearer.clock.skew.seconds`).
        scope_claim: `sasl.oauthbearer.scope.claim.name`.
        subject_claim: `sasl.oauthbearer.sub.claim.name`, the principal's name.
    """

    audiences: Sequence[str]
    issuer: str | None
    clock_skew_ms: int
    scope_claim: str
    subject_claim: str


class SignedTokenValidator:
    """Takes tokens that an identity provider has signed.

    Args:
        verified_payload: the claims of a token that is signed with one of the provider's keys;
            raises AccessTokenError.
        rules: for the claims.
        wall_ms: the time that tokens expire by.
    """

    def __init__(
        self,
        verified_payload: Callable[[str], bytes],
        rules: TokenRules,
        wall_ms: Callable[[], int],
    ) -> None:
        self._verified_payload = verified_payload
        self._rules = rules
        self._wall_ms = wall_ms

    def __call__(self, token: str) -> Login:
        """Whom the token logs in, and until when.

        Raises:
            AccessTokenError: it may not be used.
        """
        if len(token) > TOKEN_CHARACTERS_MAX:
            raise AccessTokenError(f"it has {len(token)} characters")
        claims = _claims_in(self._verified_payload(token))
        rules = self._rules
        _check_audience(claims, rules.audiences)
        if rules.issuer is not None and claims.get("iss") != rules.issuer:
            raise AccessTokenError("its issuer (iss) is not sasl.oauthbearer.expected.issuer")
        expires_ms = _time_ms(claims, "exp")
        issued_ms = _time_ms(claims, "iat")
        if expires_ms is None or issued_ms is None:
            raise AccessTokenError("it has no expiration time (exp), or no time of issue (iat)")
        _check_times(self._wall_ms(), rules.clock_skew_ms, expires_ms, issued_ms)
        before_ms = _time_ms(claims, "nbf")
        if before_ms is not None and self._wall_ms() + rules.clock_skew_ms < before_ms:
            raise AccessTokenError("it may not be used yet (nbf)")
        if before_ms is not None and expires_ms < before_ms:
            raise AccessTokenError("it expires before it may be used")
        scopes = _scopes(claims, rules.scope_claim)
        if len(set(scopes)) != len(scopes) or not all(each.strip() for each in scopes):
            raise AccessTokenError(f"its {rules.scope_claim} claim is empty or repeats a scope")
        return Login(_subject(claims, rules.subject_claim), expires_ms)


class UnsecuredTokenValidator:
    """Takes tokens that nobody has signed: whoever can reach the listener may be anybody.

    Args:
        options: of the JAAS entry, `unsecuredValidator...`.
        wall_ms: the time that tokens expire by.

    Raises:
        ValueError: an option cannot be used.
    """

    def __init__(self, options: Mapping[str, str], wall_ms: Callable[[], int]) -> None:
        def option(name: str, otherwise: str) -> str:
            return options.get(f"{UNSECURED_PREFIX}{name}", "").strip() or otherwise

        self._principal_claim = option("PrincipalClaimName", "sub")
        self._scope_claim = option("ScopeClaimName", "scope")
        self._required_scope = option("RequiredScope", "").split()
        skew = option("AllowableClockSkewMs", "0")
        if not (skew.isascii() and skew.isdigit()) or len(skew) > len(str(2**31)):
            raise ValueError(f"{UNSECURED_PREFIX}AllowableClockSkewMs must be a whole number")
        self._clock_skew_ms = int(skew)
        self._wall_ms = wall_ms

    def __call__(self, token: str) -> Login:
        """Whom the token says it logs in, and until when.

        Raises:
            AccessTokenError: it is signed, malformed, expired or lacks a scope.
        """
        if len(token) > TOKEN_CHARACTERS_MAX:
            raise AccessTokenError(f"it has {len(token)} characters")
        parts = token.split(".")
        if len(parts) != len(("header", "claims", "signature")) or parts[-1]:
            raise AccessTokenError("it is not an unsecured JWT: header.claims. and no signature")
        if _claims_in(_decoded(parts[0])).get("alg") != "none":
            raise AccessTokenError("its algorithm is not none")
        claims = _claims_in(_decoded(parts[1]))
        name = _subject(claims, self._principal_claim)
        expires_ms = _time_ms(claims, "exp")
        if expires_ms is None:
            raise AccessTokenError("it has no expiration time (exp)")
        issued_ms = _time_ms(claims, "iat")
        now_ms, skew_ms = self._wall_ms(), self._clock_skew_ms
        if issued_ms is not None and issued_ms > now_ms + skew_ms:
            raise AccessTokenError("it was issued in the future (iat)")
        _check_times(now_ms, skew_ms, expires_ms, issued_ms)
        scopes = _scopes(claims, self._scope_claim)
        if not set(self._required_scope) <= set(scopes):
            required = ", ".join(self._required_scope)
            raise AccessTokenError(f"it lacks a scope of [{required}]", f"[{required}]")
        return Login(name, expires_ms)


def _decoded(part: str) -> bytes:
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise AccessTokenError("a part of it is not base64url") from None


def _claims_in(payload: bytes) -> Claims:
    try:
        claims = json.loads(payload)
    except (ValueError, RecursionError):
        raise AccessTokenError("a part of it is not JSON") from None
    if not isinstance(claims, dict):
        raise AccessTokenError("a part of it is not a JSON object")
    return claims


def _check_audience(claims: Claims, expected: Sequence[str]) -> None:
    audience = claims.get("aud")
    if audience is None and not expected:
        return
    named = audience if isinstance(audience, list) else [audience]
    if not any(isinstance(each, str) and each in expected for each in named):
        raise AccessTokenError("its audience (aud) is not in sasl.oauthbearer.expected.audience")


def _check_times(now_ms: int, skew_ms: int, expires_ms: int, issued_ms: int | None) -> None:
    if now_ms - skew_ms >= expires_ms:
        raise AccessTokenError("it has expired (exp)")
    if issued_ms is not None and expires_ms <= issued_ms:
        raise AccessTokenError("it expires before it was issued")


def _time_ms(claims: Claims, name: str) -> int | None:
    """A claim in seconds, as ms; None: the token has none. Raises AccessTokenError."""
    seconds = claims.get(name)
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise AccessTokenError(f"its {name} claim is not a number")
    if not (math.isfinite(seconds) and 0 <= seconds < SECONDS_MAX):
        raise AccessTokenError(f"its {name} claim is not a time")
    return int(seconds * 1000)


def _subject(claims: Claims, name: str) -> str:
    subject = claims.get(name)
    if not isinstance(subject, str) or not subject.strip():
        raise AccessTokenError(f"its {name} claim names nobody")
    return subject.strip()


def _scopes(claims: Claims, name: str) -> list[str]:
    """What a text, split at blanks, or a list of texts holds. Raises AccessTokenError."""
    value = claims.get(name, [])
    if isinstance(value, str):
        return value.split()
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return value
    raise AccessTokenError(f"its {name} claim is neither a text nor a list of texts")
