"""Kafka's own command-line tools, all of them in one Java process."""

from __future__ import annotations

import socket
import struct
import subprocess
from collections.abc import Sequence
from types import TracebackType

PROGRAM = "odradek.interop.Tools"
COMMAND_SECONDS_MAX = 300
END_SECONDS_MAX = 30


class JavaTools:
    """The process, which `tests/interop/java/.../Tools.java` is; a context manager that ends it.

    What a tool does at most of its time in a process of its own is to start Java.

    Args:
        java_command: what goes before the name of a class.
    """

    def __init__(self, java_command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [*java_command, PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        self._port = int(self._process.stdout.readline())

    def run(self, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a tool to its end; several threads may do so at once.

        Args:
            tool: its class.
            arguments: of its command line.
        """
        with socket.create_connection(("127.0.0.1", self._port), COMMAND_SECONDS_MAX) as connection:
            connection.sendall("\0".join((tool, *arguments)).encode())
            connection.shutdown(socket.SHUT_WR)
            with connection.makefile("rb") as answer:
                code, output_bytes = struct.unpack(">ii", answer.read(8))
                output, errors = answer.read(output_bytes), answer.read()
        return subprocess.CompletedProcess(
            (tool, *arguments), code, output.decode(), errors.decode()
        )

    def __enter__(self) -> JavaTools:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.communicate(timeout=END_SECONDS_MAX)
