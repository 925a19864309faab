"""Where a client's tokens come from: an identity provider, by id and secret; files."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.parse import parse_qs

import pytest
import trio
import trio.testing

from odradek.client import AuthenticationError
from odradek.client.security.login_refresh import LoginRefresh
from odradek.client.security.oauthbearer import ClientCredentials, GetToken, token_source


class Provider:
    """A token endpoint that answers what it is given, and notes what was requested."""

    def __init__(self) -> None:
        self.status = 200
        self.answer: bytes = b""
        self.requests: list[tuple[str, dict[str, list[str]]]] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                provider.requests.append((self.headers["Authorization"], parse_qs(body)))
                self.send_response(provider.status)
                self.send_header("Content-Length", str(len(provider.answer)))
                self.end_headers()
                self.wfile.write(provider.answer)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/token"


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    thread = Thread(target=provider.server.serve_forever, daemon=True)
    thread.start()
    yield provider
    provider.server.shutdown()
    provider.server.server_close()
    thread.join()


def source(provider: Provider, options: dict[str, str], **settings: str) -> GetToken:
    given = {f"sasl.oauthbearer.{name.replace('_', '.')}": text for name, text in settings.items()}
    given["sasl.oauthbearer.token.endpoint.url"] = provider.url
    return token_source(given.get, options, lambda path: b"", lambda: 0)


def tokens(get_token: GetToken, count: int) -> list[str]:
    async def run() -> list[str]:
        return [await get_token() for _ in range(count)]

    return trio.run(run)


def test_a_token_is_requested_once_and_used_for_most_of_its_life(provider: Provider) -> None:
    provider.answer = json.dumps({"access_token": "a.b.c", "expires_in": 600}).encode()
    get_token = source(
        provider,
        {},
        client_credentials_client_id="me:",
        client_credentials_client_secret="hush",
        scope="read write",
    )
    assert tokens(get_token, 3) == ["a.b.c"] * 3
    ((authorization, form),) = provider.requests
    assert base64.b64decode(authorization.removeprefix("Basic ")) == b"me%3A:hush"
    assert form == {"grant_type": ["client_credentials"], "scope": ["read write"]}


def test_a_token_without_a_lifetime_is_requested_for_each_login(provider: Provider) -> None:
    """Id and secret stand in the JAAS entry, as Kafka has them before 4.1."""
    provider.answer = b'{"access_token": "abc"}'
    options = {"clientId": "me", "clientSecret": "hush", "scope": "read"}
    assert tokens(source(provider, options), 2) == ["abc", "abc"]
    assert [form["scope"] for _, form in provider.requests] == [["read"], ["read"]]


@pytest.mark.parametrize(
    ("status", "answer"),
    [(401, b"{}"), (200, b"no"), (200, b"[]"), (200, b"{}"), (200, b'{"access_token": 7}')],
)
def test_a_provider_that_gives_none(provider: Provider, status: int, answer: bytes) -> None:
    provider.status, provider.answer = status, answer
    get_token = source(provider, {"clientId": "me", "clientSecret": "hush"})
    with pytest.raises(AuthenticationError, match=f"{provider.url} gave no token") as raised:
        tokens(get_token, 1)
    assert "hush" not in str(raised.value)


def of_login(provider: Provider, wall_ms: float = 0, **settings: str) -> GetToken:
    """A source whose `sasl.login.*` are these, with _ for each dot."""
    given = {f"sasl.login.{name.replace('_', '.')}": text for name, text in settings.items()}
    given["sasl.oauthbearer.token.endpoint.url"] = provider.url
    options = {"clientId": "me", "clientSecret": "hush"}
    return token_source(given.get, options, lambda path: b"", lambda: wall_ms)


def unsigned_jwt(**claims: float) -> str:
    parts = ({"alg": "RS256"}, claims)
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts]
    return ".".join(part.rstrip("=") for part in [*encoded, "xx"])


SETTLED = {"refresh_window_jitter": "0"}


async def test_a_token_is_renewed_when_its_claims_and_the_settings_say(
    provider: Provider, autojump_clock: trio.testing.MockClock
) -> None:
    """It was issued a while ago: 4,000 s of life, half of which are over after 2,000."""
    first = unsigned_jwt(iat=500, exp=4500)
    provider.answer = json.dumps({"access_token": first, "expires_in": 9}).encode()
    get_token = of_login(provider, 1_500_000, refresh_window_factor="0.5", **SETTLED)
    assert await get_token() == first
    second = unsigned_jwt(iat=1500, exp=5500)
    provider.answer = json.dumps({"access_token": second}).encode()
    await trio.sleep(999)
    assert await get_token() == first
    await trio.sleep(2)
    assert await get_token() == second
    assert len(provider.requests) == 2


async def test_a_failed_renewal_leaves_the_token_until_it_ends(
    provider: Provider, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    provider.answer = b'{"access_token": "abc", "expires_in": 1000}'
    get_token = of_login(provider, **SETTLED)
    assert await get_token() == "abc"
    provider.status = 401
    await trio.sleep(701)  # 300 before the end, by `sasl.login.refresh.buffer.seconds`
    assert [await get_token(), await get_token()] == ["abc", "abc"]
    assert len(provider.requests) == 2  # it is not asked again at once
    assert "the last token is used until it expires" in caplog.text
    await trio.sleep(11)
    assert await get_token() == "abc"
    assert len(provider.requests) == 3
    await trio.sleep(300)
    with pytest.raises(AuthenticationError, match="gave no token"):
        await get_token()


async def test_logins_at_once_share_a_request(provider: Provider) -> None:
    provider.answer = b'{"access_token": "abc", "expires_in": 1000}'
    get_token = of_login(provider)
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(get_token)
    assert len(provider.requests) == 1


async def test_an_answer_that_may_change_is_requested_again(
    provider: Provider, autojump_clock: trio.testing.MockClock
) -> None:
    """After 1, 2, 4 and 3 s: then ten have passed."""
    provider.status = 503
    get_token = of_login(provider, retry_backoff_ms="1000", retry_backoff_max_ms="10000")
    began = trio.current_time()
    with pytest.raises(AuthenticationError, match="503"):
        await get_token()
    assert trio.current_time() - began == pytest.approx(10)
    assert len(provider.requests) == 5
    provider.status = 403
    with pytest.raises(AuthenticationError, match="403"):
        await get_token()
    assert len(provider.requests) == 6


def test_a_provider_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        given = {
            "sasl.oauthbearer.token.endpoint.url": f"http://127.0.0.1:{silent.getsockname()[1]}/",
            "sasl.login.connect.timeout.ms": "30000",
            "sasl.login.read.timeout.ms": "50",
            "sasl.login.retry.backoff.max.ms": "0",
        }
        options = {"clientId": "me", "clientSecret": "hush"}
        get_token = token_source(given.get, options, lambda path: b"", lambda: 0)
        with pytest.raises(AuthenticationError, match="timed out"):
            tokens(get_token, 1)


@pytest.mark.parametrize(
    ("now_s", "start_s", "end_s", "chance", "refreshed_s"),
    [
        (0, 0, 3600, 0, 2880),  # 80 % of its life
        (0, 0, 3600, 1, 3060),  # 85 %
        (0, 0, 1000, 0, 700),  # 300 s are kept free at the end
        (0, -3600, 600, 0, 60),  # 80 % are over, but not 60 s since the last time
        (0, 0, 300, 0, 240),  # too short for both: 80 % of it
        (100, 0, 400, 0, 340),  # likewise, of what is left
    ],
)
def test_when_a_token_is_renewed_by_default(
    now_s: int, start_s: int, end_s: int, chance: float, refreshed_s: int
) -> None:
    times = (1000 * each for each in (now_s, start_s, end_s))
    assert LoginRefresh().refresh_ms(*times, chance) == pytest.approx(1000 * refreshed_s)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("refresh.window.factor", "0.4"),
        ("refresh.window.factor", "1.1"),
        ("refresh.window.jitter", "0.3"),
        ("refresh.min.period.seconds", "901"),
        ("refresh.buffer.seconds", "-1"),
        ("connect.timeout.ms", "soon"),
        ("retry.backoff.ms", "nan"),
    ],
)
def test_settings_of_logins_that_cannot_be(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"sasl.login.{name}={text} cannot be used"):
        LoginRefresh.of({f"sasl.login.{name}": text}.get)


def test_a_provider_that_is_not_there() -> None:
    refresh = LoginRefresh(retry_backoff_max_ms=0)
    url = "http://127.0.0.1:1/token"
    get_token = ClientCredentials(url, "me", "hush", None, refresh, lambda: 0)
    with pytest.raises(AuthenticationError, match="gave no token"):
        tokens(get_token, 1)


def test_a_file_that_cannot_be_read() -> None:
    def read(path: str) -> bytes:
        assert path == "/to ken"
        raise OSError

    given = {"sasl.oauthbearer.token.endpoint.url": "file:///to%20ken"}
    with pytest.raises(AuthenticationError, match="/to ken, which holds the token"):
        tokens(token_source(given.get, {}, read, lambda: 0), 1)
