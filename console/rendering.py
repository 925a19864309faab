"""Templates to pages: everything that is put into one is escaped."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from . import formats

if TYPE_CHECKING:
    from starlette.requests import Request

    from .settings import ConsoleSettings

NAVIGATION = (
    ("overview", "/", "Overview", "o"),
    ("topics", "/topics", "Topics", "t"),
    ("groups", "/groups", "Groups", "g"),
    ("brokers", "/brokers", "Brokers", "b"),
    ("transactions", "/transactions", "Transactions", "x"),
    ("access", "/access", "Access", "a"),
    ("storage", "/storage", "Storage", "s"),
)
TEST_BROKER = ("test", "/test", "Test broker", "f")
"""Name, path, title, and the key that goes there after `g`."""

ASSETS = (
    "console.css",
    "console.js",
    "icon.svg",
    "vendor/htmx.min.js",
    "vendor/htmx-sse.min.js",
    "vendor/uplot.min.js",
    "vendor/uplot.min.css",
)


class Renderer:
    """Makes pages.

    Args:
        settings: what all of them show.
    """

    def __init__(self, settings: ConsoleSettings) -> None:
        package = __name__.rpartition(".")[0]
        self._versions = {name: _version_of(package, name) for name in ASSETS}
        self._environment = Environment(
            loader=PackageLoader(package),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters |= {
            "number": formats.number,
            "size": formats.size,
            "duration": formats.duration,
            "time": formats.time,
            "visible": formats.visible,
            "block": formats.block,
            "shortened": formats.shortened,
            "segment": _segment,
        }
        has_test = settings.control is not None
        self._environment.globals |= {
            "navigation": (*NAVIGATION, TEST_BROKER) if has_test else NAVIGATION,
            "may_write": settings.may_write,
            "has_token": settings.token is not None,
            "asset": self._asset,
            "url": make_url,
        }

    def load_templates(self) -> None:
        """Compile all templates, which takes some tenths of a second: no page is to wait for it."""
        for name in self._environment.list_templates():
            self._environment.get_template(name)

    def page(
        self, request: Request, template: str, status: int = 200, **values: Any
    ) -> HTMLResponse:
        """A page of a template, or what htmx asked for in place of one."""
        text = self.text(request, template, **values)
        return HTMLResponse(text, status)

    def text(self, request: Request, template: str, **values: Any) -> str:
        """The HTML of a template."""
        is_fragment = "hx-request" in request.headers
        return self._environment.get_template(template).render(
            {
                "csrf": request.state.csrf,
                "here": here(request),
                "is_fragment": is_fragment,
                **values,
            }
        )

    def _asset(self, name: str) -> str:
        """The path of a file, with a version that changes with it: browsers may keep it."""
        return f"/static/{name}?{self._versions[name]}"


def make_url(path: str, **query: object) -> str:
    """A path with a query; what is None or empty is left out."""
    given = {
        name: str(value)
        for name, value in query.items()
        if value is not None and value is not False and value != ""
    }
    return f"{path}?{urlencode(given, errors='replace')}" if given else path


def here(request: Request) -> str:
    """The address of a request on this console. A path that begins with two slashes would be that
    of another site."""
    path = "/" + quote(request.url.path.lstrip("/\\"), errors="replace")
    return f"{path}?{request.url.query}" if request.url.query else path


def _segment(text: object) -> str:
    """A name as one segment of a path."""
    return quote(str(text), safe="", errors="replace")


def _version_of(package: str, name: str) -> str:
    return sha256(files(package).joinpath("static", name).read_bytes()).hexdigest()[:12]
