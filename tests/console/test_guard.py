"""Who may ask, from where, and whether anything may be changed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from support.console import FORM, Console
from support.ports import nobody_listens

pytestmark = pytest.mark.clients

TOKEN = "correct horse battery staple"

PAGES = ("/", "/topics", "/login", "/nothing-here", "/static/console.css", "/static/nothing.css")


@pytest.fixture(scope="module")
def locked(broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """A read-only console with a token."""
    log = tmp_path_factory.mktemp("console") / "log"
    with Console(broker.bootstrap, log, ["--token", TOKEN, "--name", "console.example"]) as it:
        yield it


def port_of(console: Console) -> str:
    return console.host.rpartition(":")[2]


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "a b", "[::1"])
def test_hosts_that_are_not_the_consoles_are_refused(console: Console, host: str) -> None:
    answer = console.get("/", {"Host": host})
    assert answer.status in (400, 403)
    assert b"odradek" not in answer.body.lower().replace(b"odradek console", b"")


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]", "192.0.2.7", "LOCALHOST"])
def test_hosts_that_no_rebinding_can_have_are_served(console: Console, name: str) -> None:
    assert console.get("/login", {"Host": f"{name}:{port_of(console)}"}).status == 200


def test_name_of_the_command_line_is_served(locked: Console) -> None:
    assert locked.get("/login", {"Host": "console.example"}).status == 200
    assert locked.get("/login", {"Host": "other.example"}).status == 403


@pytest.mark.parametrize("path", PAGES)
def test_every_answer_forbids_what_is_not_the_consoles_own(console: Console, path: str) -> None:
    headers = console.get(path).headers
    policy = dict(each.split(" ", 1) for each in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["form-action"] == "'self'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "server" not in headers
    assert "access-control-allow-origin" not in headers


def test_pages_are_not_kept_and_files_are(console: Console) -> None:
    assert console.get("/").headers["cache-control"] == "no-store"
    assert "immutable" in console.get("/static/console.css").headers["cache-control"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": ""}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Content-Type": "text/plain"}, 400),
        ({"Content-Type": "multipart/form-data; boundary=x"}, 400),
    ],
)
def test_forms_of_other_sites_change_nothing(
    console: Console, topic: str, headers: dict[str, str], status: int
) -> None:
    answer = console.post("/topics", {"name": topic, "partitions": 1}, headers)
    assert answer.status == status
    assert console.get(f"/topics/{topic}").status == 404


def test_form_without_an_origin_is_refused(console: Console, topic: str) -> None:
    body = urlencode({"name": topic, "csrf": console.csrf()}).encode()
    assert console.send("POST", "/topics", body, {"Content-Type": FORM}).status == 403


@pytest.mark.parametrize("secret", ["", "0" * 64, "ü"])
def test_form_without_the_secret_of_the_pages_changes_nothing(
    console: Console, topic: str, secret: str
) -> None:
    answer = console.post("/topics", {"name": topic, "csrf": secret})
    assert answer.status == 400
    assert "earlier run" in answer.page.text
    assert console.get(f"/topics/{topic}").status == 404


def test_form_that_is_too_large_is_refused(console: Console, topic: str) -> None:
    answer = console.post("/topics", {"name": topic, "settings": "x" * (3 << 20)})
    assert answer.status == 400
    assert "2,097,152 bytes" in answer.page.text


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(console: Console, method: str) -> None:
    assert console.send(method, "/topics", None).status == 405


def test_other_sites_may_link_but_not_embed(console: Console) -> None:
    linked = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert console.get("/topics", linked).status == 200
    embedded = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert console.get("/rates.json", embedded).status == 403


@pytest.mark.parametrize("path", ["/", "/topics?search=a", "/storage", "/rates.json"])
def test_without_the_token_nothing_is_shown(locked: Console, path: str) -> None:
    answer = locked.get(path)
    assert answer.status == 303
    assert answer.location.startswith("/login?next=/")
    assert answer.body == b""
    assert locked.get(path, {"HX-Request": "true"}).status == 401


def test_token_lets_in_and_its_cookie_is_the_consoles_alone(locked: Console) -> None:
    answer = locked.post("/login", {"token": TOKEN, "next": "/topics?search=a"})
    assert (answer.status, answer.location) == (303, "/topics?search=a")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    name_and_value = cookie.partition(";")[0]
    assert port_of(locked) in name_and_value.partition("=")[0]
    assert locked.get("/topics", {"Cookie": name_and_value}).status == 200
    assert locked.get("/topics", {"Cookie": name_and_value[:-1] + "0"}).status == 303
    assert locked.get("/topics", {"Cookie": "\x01"}).status == 303


def test_token_can_be_in_a_header(locked: Console) -> None:
    assert locked.get("/topics", {"Authorization": f"Bearer {TOKEN}"}).status == 200
    assert locked.get("/topics", {"Authorization": f"Bearer {TOKEN}x"}).status == 303


def test_wrong_token_lets_nobody_in(locked: Console) -> None:
    answer = locked.post("/login", {"token": TOKEN[:-1]})
    assert answer.status == 403
    assert "set-cookie" not in answer.headers
    assert "not the token" in answer.page.text


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example", "/\\evil.example", "x"])
def test_login_leads_to_no_other_site(locked: Console, back: str) -> None:
    assert locked.post("/login", {"token": TOKEN, "next": back}).location == "/"


def test_read_only_console_changes_nothing(locked: Console, topic: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    for path in ("/topics", f"/topics/{topic}/delete", "/groups/reset", "/test/faults"):
        answer = locked.post(path, {"name": topic}, headers)
        assert (answer.status, b"read-only" in answer.body) == (403, True)
    html = locked.get("/topics", headers).html
    assert 'href="/new-topic"' not in html
    assert "Read-only" in html


def test_cluster_that_does_not_answer_is_said_to_be_gone(tmp_path: Path) -> None:
    with nobody_listens() as address, Console(address, tmp_path / "log") as console:
        answer = console.get("/topics")
        assert answer.status == 503
        assert "No broker answers" in answer.page.text
        assert address in answer.page.text
        assert "/topics" in answer.page.links()


def test_without_a_token_only_this_machine_is_served() -> None:
    for listen in ("0.0.0.0:0", "192.0.2.7:9440", "[::]:0"):
        outcome = run_console("--listen", listen)
        assert outcome.returncode == 1
        assert "give them a token" in outcome.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--listen", "9440"], "write HOST:PORT"),
        (["--listen", "localhost:99999"], "write HOST:PORT"),
        (["--token", "short"], "8 to 1000 characters"),
        (["--control", "https://127.0.0.1:1"], "is no control channel"),
        (["-b", "nowhere"], "is no broker's address"),
    ],
)
def test_what_no_console_can_be_made_of_is_refused(arguments: list[str], sentence: str) -> None:
    outcome = run_console(*arguments)
    assert outcome.returncode == 1
    assert sentence in outcome.stderr


def run_console(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "odradek", "console", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "ODRADEK_BOOTSTRAP_SERVER": "127.0.0.1:1"},
    )
