"""`odradek serve --ephemeral --json` as a test in another language has it: a process and a URL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self

ANSWER_SECONDS_MAX = 100


class ServedBrokers:
    """Brokers with an HTTP control channel; a context manager that closes their standard input.

    Args:
        arguments: of `odradek serve`, besides `--ephemeral --json`.
        folder: where temporary folders are made; None: where the system has them.

    Attributes:
        ready: what the ready line says.
        process: the one that has the control channel.
    """

    def __init__(self, *arguments: str, folder: Path | None = None) -> None:
        command = [sys.executable, "-m", "odradek", "serve", "--ephemeral", "--json", *arguments]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ if folder is None else {**os.environ, "TMPDIR": str(folder)},
            text=True,
        )
        assert self.process.stdout is not None
        self.ready: dict[str, Any] = json.loads(self.process.stdout.readline())

    @property
    def bootstrap_servers(self) -> str:
        return str(self.ready["bootstrap_servers"])

    @property
    def control_port(self) -> int:
        return int(self.ready["control_port"])

    def connect(self) -> HTTPConnection:
        """A connection to the control channel."""
        return HTTPConnection("127.0.0.1", self.control_port, timeout=ANSWER_SECONDS_MAX)

    def request(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> tuple[int, Any]:
        """The status and the JSON of an answer."""
        connection = self.connect()
        try:
            encoded = None if body is None else json.dumps(body)
            connection.request(method, path, encoded, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """What a GET answers; it fails the test if that is an error."""
        return self._done(*self.request("GET", path))

    def post(self, path: str, **body: object) -> Any:
        """What a POST answers; it fails the test if that is an error."""
        return self._done(*self.request("POST", path, body))

    def delete(self, path: str) -> Any:
        """What a DELETE answers; it fails the test if that is an error."""
        return self._done(*self.request("DELETE", path))

    @staticmethod
    def _done(status: int, answer: Any) -> Any:
        assert status == 200, (status, answer)
        return answer

    def close(self) -> int:
        """Close its standard input, and wait for its end; returns the exit code."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            return self.process.wait(ANSWER_SECONDS_MAX)
        finally:
            self.process.kill()
            self.process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
