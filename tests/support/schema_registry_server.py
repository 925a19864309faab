"""A schema registry's documented REST API in memory, over real HTTP, that can be slow or broken.

It checks nothing and stores what it is given: what is tested is who asks it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


class SchemaRegistryServer:
    """Runs in threads of the test."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        """Method and path of each."""
        self.refusal: tuple[int, Any] | None = None
        """A status and a body that answer every request."""
        self.gate = threading.Event()
        """No request is answered before it is set."""
        self.gate.set()
        self._schemas: list[dict[str, Any]] = []
        """By ids, which begin with 1."""
        self._subjects: dict[str, list[int]] = {}
        """The ids of a subject's versions."""
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """End it; connections are refused from now on."""
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """The status and the body that answer a request."""
        self.gate.wait()
        with self._lock:
            self.requests.append(f"{method} {path}")
            if self.refusal is not None:
                return self.refusal
            parts = [unquote(part) for part in path.strip("/").split("/")]
            match method, parts:
                case "GET", ["schemas", "ids", number]:
                    return self._schema(int(number))
                case "POST", ["subjects", subject, "versions"]:
                    return 200, {"id": self._register(subject, body)}
                case "POST", ["subjects", subject]:
                    return self._look_up(subject, body)
                case "GET", ["subjects", subject, "versions", version]:
                    return self._version(subject, version)
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _schema(self, number: int) -> tuple[int, Any]:
        if not 0 < number <= len(self._schemas):
            return 404, {"error_code": 40403, "message": "Schema not found"}
        return 200, self._schemas[number - 1]

    def _register(self, subject: str, body: dict[str, Any]) -> int:
        if body not in self._schemas:
            self._schemas.append(body)
        number = self._schemas.index(body) + 1
        versions = self._subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def _look_up(self, subject: str, body: dict[str, Any]) -> tuple[int, Any]:
        for version, number in enumerate(self._subjects.get(subject, ()), start=1):
            if self._schemas[number - 1] == body:
                return 200, {"subject": subject, "id": number, "version": version, **body}
        return 404, {"error_code": 40403, "message": "Schema not found"}

    def _version(self, subject: str, version: str) -> tuple[int, Any]:
        versions = self._subjects.get(subject)
        if not versions:
            return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
        place = len(versions) if version in ("latest", "-1") else int(version)
        number = versions[place - 1]
        found = self._schemas[number - 1]
        return 200, {"subject": subject, "id": number, "version": place, **found}


@contextmanager
def schema_registry() -> Iterator[SchemaRegistryServer]:
    """A registry for the time of a test."""
    server = SchemaRegistryServer()
    try:
        yield server
    finally:
        server.close()


def _handler_of(registry: SchemaRegistryServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET")

        def do_POST(self) -> None:
            self._answer("POST")

        def _answer(self, method: str) -> None:
            size = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(size)) if size else {}
            status, answer = registry.answer(method, urlsplit(self.path).path, body)
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Says nothing."""

    return Handler
