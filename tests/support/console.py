"""A console in a process of its own, and a client that knows HTML as far as tests do."""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import urlencode, urlsplit

ANSWER_SECONDS_MAX = 60.0
READY = "console at "
BLOCKS = frozenset(
    ("dd", "details", "div", "dt", "h1", "h2", "h3", "li", "p", "section", "summary")
) | {"td", "th", "time", "tr"}
"""What begins at some distance from what is before it."""
BOUNDARY = "----WebKitFormBoundary7MA4YWxkTrZu0gW"
FORM = "application/x-www-form-urlencoded"


class Element(NamedTuple):
    """The beginning of an element."""

    name: str
    attributes: dict[str, str]


class Page(HTMLParser):
    """A page taken apart: its elements, and the text that people see."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in BLOCKS:
            self.texts.append(" ")
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        """All of it, with one space wherever there was room."""
        return " ".join("".join(self.texts).split())

    def all(self, name: str) -> list[dict[str, str]]:
        """The attributes of all elements of a kind."""
        return [each.attributes for each in self.elements if each.name == name]

    def links(self) -> list[str]:
        """Where its links lead."""
        return [each["href"] for each in self.all("a") if "href" in each]

    def field(self, name: str) -> str:
        """The value of a form's field."""
        return next(each["value"] for each in self.all("input") if each.get("name") == name)


class Answer(NamedTuple):
    """What the console answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def html(self) -> str:
        """The body as it came."""
        return self.body.decode()

    @property
    def page(self) -> Page:
        """The body, taken apart."""
        return Page(self.html)

    @property
    def location(self) -> str:
        """Where it says to go on."""
        return self.headers["location"]


class Console:
    """`odradek console` of a cluster; a context manager that ends it.

    Args:
        bootstrap: of the cluster.
        log: a file for its standard error.
        arguments: further ones.
        listen: where it serves.
    """

    def __init__(
        self,
        bootstrap: str,
        log: Path,
        arguments: Sequence[str] = (),
        listen: str = "127.0.0.1:0",
    ) -> None:
        program = [sys.executable, "-m", "odradek", "console", "--ends-with-input"]
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [*program, "-b", bootstrap, "--listen", listen, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith(READY), f"{line!r}\n{log.read_text()}"
        self.url = line.removeprefix(READY).strip()
        self.host = urlsplit(self.url).netloc
        self.log = log

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Ask for a page."""
        return self.send("GET", path, None, headers)

    def page(self, path: str) -> Page:
        """A page that there is."""
        answer = self.get(path)
        assert answer.status == 200, f"{path}: {answer.status}\n{answer.page.text}"
        return answer.page

    def post(
        self, path: str, fields: Mapping[str, object], headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a form as a page of the console would: with its origin and its secret."""
        given = {"csrf": self.csrf(), **fields}
        body = urlencode(given).encode()
        sent = {"Content-Type": FORM, "Origin": self.url, **(headers or {})}
        return self.send("POST", path, body, sent)

    def upload(self, path: str, content: bytes, fields: Mapping[str, object]) -> Answer:
        """Send a form with a file, as a browser does."""
        given = {"csrf": self.csrf(), **fields}
        parts = [
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in given.items()
        ]
        parts.append(
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.jsonl"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        )
        body = "".join(parts).encode() + content + f"\r\n--{BOUNDARY}--\r\n".encode()
        sent = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}", "Origin": self.url}
        return self.send("POST", path, body, sent)

    def csrf(self) -> str:
        """The secret that its forms carry."""
        return self.page("/login").field("csrf")

    def send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request as it is given."""
        connection = http.client.HTTPConnection(self.host, timeout=ANSWER_SECONDS_MAX)
        try:
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()

    def events(self, path: str) -> http.client.HTTPResponse:
        """An answer that does not end, to be read line by line; closing it is the caller's."""
        connection = http.client.HTTPConnection(self.host, timeout=ANSWER_SECONDS_MAX)
        connection.request("GET", path)
        return connection.getresponse()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(ANSWER_SECONDS_MAX)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()


def assets_of(page: Page) -> list[str]:
    """Every address that a browser fetches by itself for a page."""
    fetched = [each["src"] for name in ("script", "img", "iframe") for each in page.all(name)]
    return fetched + [each["href"] for each in page.all("link")]


def require_harmless(html: str) -> None:
    """Nothing in a page runs, or is fetched from elsewhere, but the console's own files."""
    page = Page(html)
    allowed = re.compile(r"/static/[\w./-]+\?[0-9a-f]{12}")
    for script in page.all("script"):
        assert allowed.fullmatch(script.get("src", "")), script
    for address in assets_of(page):
        assert allowed.fullmatch(address), address
    assert not page.all("style")
    for element in page.elements:
        inline = [name for name in element.attributes if name.startswith("on") or name == "style"]
        assert not inline, element
        for name in ("href", "src", "action", "hx-get", "sse-connect"):
            address = element.attributes.get(name, "/")
            assert re.match(r"[/#](?![/\\])", address), element
