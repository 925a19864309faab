"""Where a client's tokens come from: an identity provider, by id and secret; files."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.parse import parse_qs

import pytest
import trio

from odradek.client import AuthenticationError
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


def test_a_provider_that_is_not_there() -> None:
    get_token = ClientCredentials("http://127.0.0.1:1/token", "me", "hush", None)
    with pytest.raises(AuthenticationError, match="gave no token"):
        tokens(get_token, 1)


def test_a_file_that_cannot_be_read() -> None:
    def read(path: str) -> bytes:
        assert path == "/to ken"
        raise OSError

    given = {"sasl.oauthbearer.token.endpoint.url": "file:///to%20ken"}
    with pytest.raises(AuthenticationError, match="/to ken, which holds the token"):
        tokens(token_source(given.get, {}, read, lambda: 0), 1)
