"""An identity provider's keys (JWKS, RFC 7517), and how a broker keeps up with them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

import jwt
import trio
from jwt.api_jws import PyJWS

from ...runtime.clock import Clock
from ...runtime.offload import run_in_abandoned_thread
from ...storage.io.files import REAL_FILES, Files
from .access_token import AccessTokenError

logger = logging.getLogger(__name__)

KEY_TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
    **dict.fromkeys(("HS256", "HS384", "HS512"), "oct"),
}
"""By algorithm of a signature, the type of key it needs: a public key is no secret of HMAC, and
`none` is no algorithm."""

BYTES_MAX: Final = 1024 * 1024
TIMEOUT_SECONDS: Final = 20.0
"""As much as Kafka's library waits for an identity provider."""
UNKNOWN_KEY_MS: Final = 10_000
"""A token of a key that is not known has the keys be read again, once in this time: whoever can
reach a listener can name keys."""


class UnknownKeyError(AccessTokenError):
    """No key of the set can have signed a token."""


class JsonWebKeys:
    """One set of keys.

    Args:
        keys: each as the set has it.
    """

    def __init__(self, keys: list[Mapping[str, object]]) -> None:
        self._keys = keys
        self._usable: dict[tuple[int, str], jwt.PyJWK | None] = {}
        self._verifier = PyJWS(list(KEY_TYPES))

    @classmethod
    def decode(cls, data: bytes) -> JsonWebKeys:
        """Read a set.

        Raises:
            ValueError: it is none, or has no key; the text repeats nothing of it.
        """
        try:
            keys = json.loads(data)["keys"]
        except (ValueError, RecursionError, KeyError, TypeError):
            raise ValueError("it is not a JSON Web Key Set") from None
        if not isinstance(keys, list) or not any(isinstance(each, dict) for each in keys):
            raise ValueError("it holds no JSON Web Key")
        return cls([each for each in keys if isinstance(each, dict)])

    def verified_payload(self, token: str) -> bytes:
        """The claims of a token, signed with one of the keys.

        Raises:
            UnknownKeyError: none of the keys fits it.
            AccessTokenError: it is not a signed JWT, or none of them has signed it.
        """
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError):
            raise AccessTokenError("it is not a JWT") from None
        algorithm, key_id = header.get("alg"), header.get("kid", "")
        if not isinstance(algorithm, str) or algorithm not in KEY_TYPES:
            raise AccessTokenError("its algorithm is none, or another that is not accepted")
        found = False
        for key in self._candidates(algorithm, key_id):
            found = True
            try:
                decoded = self._verifier.decode_complete(token, key, algorithms=[algorithm])
            except (jwt.PyJWTError, ValueError):
                continue
            return bytes(decoded["payload"])
        if not found:
            raise UnknownKeyError("no key of the identity provider can have signed it")
        raise AccessTokenError("its signature is wrong")

    def _candidates(self, algorithm: str, key_id: str) -> Iterator[jwt.PyJWK]:
        for index, key in enumerate(self._keys):
            if (
                key.get("kty") == KEY_TYPES[algorithm]
                and key.get("use", "sig") == "sig"
                and key.get("alg", algorithm) == algorithm
                and (not key_id or key.get("kid") == key_id)
            ):
                usable = self._key(index, algorithm)
                if usable is not None:
                    yield usable

    def _key(self, index: int, algorithm: str) -> jwt.PyJWK | None:
        if (index, algorithm) not in self._usable:
            try:
                made = jwt.PyJWK(dict(self._keys[index]), algorithm)
            except (jwt.PyJWTError, ValueError, TypeError) as error:
                logger.warning("key %d of the identity provider is unusable: %s", index + 1, error)
                made = None
            self._usable[index, algorithm] = made
        return self._usable[index, algorithm]


class JwksSettings(NamedTuple):
    """Where keys are and how often they are read, `sasl.oauthbearer.jwks.endpoint.*`; times in ms.

    Attributes:
        url: of http, https or file.
        refresh_ms: after which they are read again.
        retry_backoff_ms: the first pause after a failure.
        retry_backoff_max_ms: the longest.
    """

    url: str
    refresh_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int


class RefreshedKeys:
    """The keys at a URL, read again from time to time, and when a token names one that is missing.

    Args:
        settings: where, and how often.
        clock: for how often unknown keys are looked for.
        files: reads what a URL of file names.

    Raises:
        ValueError: the URL is none, or the file that it names cannot be used.
    """

    def __init__(self, settings: JwksSettings, clock: Clock, files: Files = REAL_FILES) -> None:
        self._settings = settings
        self._clock = clock
        self._keys: JsonWebKeys | None = None
        self._look_again_ms = 0
        self._refresh_requested = trio.Event()
        self._read: Callable[[], bytes] = lambda: _fetched(settings.url)
        url = urlsplit(settings.url)
        if url.scheme == "file":
            path = unquote(url.path)
            self._read = lambda: files.read_bytes(path)
            try:
                self._keys = JsonWebKeys.decode(self._read())
            except OSError as error:
                raise ValueError(f"{path} cannot be read: {error.strerror}") from error
            except ValueError as error:
                raise ValueError(f"{path} cannot be used: {error}") from error
        elif url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"{settings.url} is not a URL of http, https or file")

    def verified_payload(self, token: str) -> bytes:
        """As `JsonWebKeys` has it; a key that is missing is looked for, for the next login."""
        if self._keys is None:
            raise AccessTokenError(f"the keys at {self._settings.url} have not been fetched yet")
        try:
            return self._keys.verified_payload(token)
        except UnknownKeyError:
            now_ms = self._clock.monotonic_ms()
            if now_ms >= self._look_again_ms:
                self._look_again_ms = now_ms + UNKNOWN_KEY_MS
                self._refresh_requested.set()
            raise

    async def run(self) -> None:
        """Keep the keys up to date, until cancelled."""
        if self._keys is not None:
            await self._pause()
        while True:
            self._refresh_requested = trio.Event()
            await self._refresh()
            await self._pause()

    async def _pause(self) -> None:
        with trio.move_on_after(self._settings.refresh_ms / 1000):
            await self._refresh_requested.wait()

    async def _refresh(self) -> None:
        backoff_ms = self._settings.retry_backoff_ms
        while True:
            try:
                self._keys = JsonWebKeys.decode(await run_in_abandoned_thread(self._read))
            except (OSError, ValueError) as error:
                logger.warning("JWKS refresh of %s failed: %s", self._settings.url, error)
            else:
                logger.info("JWKS refresh of %s complete", self._settings.url)
                return
            await trio.sleep(backoff_ms / 1000)
            backoff_ms = min(2 * backoff_ms, self._settings.retry_backoff_max_ms)


def _fetched(url: str) -> bytes:
    """What is at a URL. Raises OSError, ValueError."""
    from http.client import HTTPException
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=TIMEOUT_SECONDS) as response:
            data: bytes = response.read(BYTES_MAX + 1)
    except HTTPException as error:
        raise OSError(f"it does not speak HTTP: {error!r}") from error
    if len(data) > BYTES_MAX:
        raise ValueError(f"it is longer than {BYTES_MAX} bytes")
    return data
