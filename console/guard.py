"""What every request passes first: who may ask, from where, and whether anything may be changed.

A page of another site can have a browser send requests here, and a name of another site can be
made to lead here (DNS rebinding). So a request must name this console as its Host, a form must
come from a page of its own (Origin), and carry a secret that only its pages hold. Answers forbid
scripts and styles that are not files of ours: what a record may still smuggle into a page does
not run.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse

from ..runtime.rng import random_secret

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from .settings import ConsoleSettings

METHODS = frozenset({"GET", "HEAD", "POST"})
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
SECRET_BYTES = 32
LOGIN_PATH = "/login"
STATIC_PATH = "/static/"
BEARER = "Bearer "

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # With no-referrer a browser would send "null" as the Origin of our own forms.
    "referrer-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens there."""
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


class Guard:
    """Refuses what may not be asked, and gives answers their headers.

    Args:
        app: what is asked then.
        settings: who may do what.
    """

    def __init__(self, app: ASGIApp, settings: ConsoleSettings) -> None:
        self._app = app
        self._settings = settings
        self.pass_ = Pass(settings)
        self._names = LOOPBACK_NAMES | {name.lower() for name in (settings.host, *settings.names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # a WebSocket is closed unanswered
        headers = Headers(scope=scope)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    answered[name] = value
                answered.setdefault("cache-control", "no-store")
            await send(message)

        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await PlainTextResponse(f"{refusal[1]}\n", refusal[0])(scope, receive, send_guarded)
        elif not self._is_let_in(scope, headers):
            await self._ask_for_token(scope, receive, send_guarded)
        else:
            scope.setdefault("state", {})["csrf"] = self.pass_.csrf
            await self._app(scope, receive, send_guarded)

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """The status and the sentence for what is refused whoever asks."""
        if scope["method"] not in METHODS:
            return 405, "This is read by GET, and changed by POST."
        host = _only(headers, "host")
        if host is None or not self._is_own_name(host):
            return 403, (
                "The console is not called so. Open it by the address that it printed, or start it "
                "with --name NAME for another name."
            )
        site = headers.get("sec-fetch-site")
        if scope["method"] == "POST":
            origin = _only(headers, "origin")
            if origin is None or _origin_host(origin) != host.lower() or site == "cross-site":
                return 403, "Only pages of this console may send that."
            if not self._settings.may_write and scope["path"] != LOGIN_PATH:
                return 403, (
                    "The console is read-only. Start it with --console-write to change anything."
                )
        elif site == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
            return 403, "Other sites may link to this console, and nothing more."
        return None

    def _is_own_name(self, host: str) -> bool:
        """Whether a Host header names this console. An address does: rebinding needs a name."""
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            return False
        return name is not None and (name in self._names or _is_address(name))

    def _is_let_in(self, scope: Scope, headers: Headers) -> bool:
        if self._settings.token is None or scope["path"] == LOGIN_PATH:
            return True
        if scope["path"].startswith(STATIC_PATH):
            return True  # what a login page looks like is no secret
        bearer = headers.get("authorization", "")
        if bearer.startswith(BEARER):
            return self.pass_.is_token(bearer.removeprefix(BEARER))
        return self.pass_.is_cookie(headers.get("cookie", ""))

    async def _ask_for_token(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "GET" and "hx-request" not in Headers(scope=scope):
            query = scope["query_string"].decode("latin-1")
            back = quote(scope["path"] + (f"?{query}" if query else ""))
            await RedirectResponse(f"{LOGIN_PATH}?next={back}", 303)(scope, receive, send)
        else:
            refused = PlainTextResponse("Log in first: the console has a token.\n", 401)
            await refused(scope, receive, send)


class Pass:
    """The secrets of one run of a console: what a form must carry, and what a visitor's cookie is.

    Args:
        settings: with the token.
    """

    def __init__(self, settings: ConsoleSettings) -> None:
        self._token = settings.token
        self._secret = random_secret(SECRET_BYTES)
        self.csrf = self._signed("form")
        self.cookie_name = f"odradek_console_{settings.port}"
        """Cookies are of a host, whatever the port: two consoles of one must not share theirs."""

    def is_token(self, text: str) -> bool:
        """Whether this is the token; how long it takes does not say how much of it is right."""
        return self._token is not None and hmac.compare_digest(text.encode(), self._token.encode())

    def is_form(self, text: str) -> bool:
        """Whether a form carries the secret of our pages."""
        return hmac.compare_digest(text.encode(), self.csrf.encode())

    def is_cookie(self, header: str) -> bool:
        """Whether a Cookie header holds what `cookie` gave."""
        try:
            found = SimpleCookie(header).get(self.cookie_name)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(
            found.value.encode(), self._signed("visitor").encode()
        )

    def cookie(self) -> str:
        """The value that a visitor who knew the token gets."""
        return self._signed("visitor")

    def _signed(self, what: str) -> str:
        return hmac.new(self._secret, what.encode(), sha256).hexdigest()


def _only(headers: Headers, name: str) -> str | None:
    """A header that must be there once."""
    values = headers.getlist(name)
    return values[0] if len(values) == 1 else None


def _origin_host(origin: str) -> str | None:
    """The host and port of an origin; behind a proxy with TLS its scheme is another than ours."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return None
    return parts.netloc.lower() if parts.scheme in ("http", "https") else None


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
