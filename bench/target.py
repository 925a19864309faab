"""The broker that is measured, and what the operating system says of its process."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from .errors import BenchError

PROCESS_CLOCK = 2
"""Linux's number for the processor time of a process, below the bits of its id."""


class BenchTarget(NamedTuple):
    """A broker to be measured.

    Attributes:
        host: where it listens.
        port: likewise.
        pid: its process, if that is on this machine; then processor time and memory are measured.
        tls: Kafka's `ssl.*` settings of a client; empty: it is spoken to in plain.
    """

    host: str
    port: int
    pid: int | None = None
    tls: Mapping[str, str] = {}

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def ssl_context(self) -> ssl.SSLContext | None:
        """How TLS is spoken with it; None: not at all.

        Raises:
            BenchError: a setting cannot be used.
        """
        if not self.tls:
            return None
        from ..client.security.tls_context import client_context
        from ..client.security.tls_settings import TlsError, tls_settings_of

        try:
            return client_context(tls_settings_of(self.tls), lambda path: Path(path).read_bytes())
        except TlsError as error:
            raise BenchError(str(error)) from error

    def cpu_seconds(self) -> float | None:
        """User and system time of its process so far, of all threads; None: not known.

        Its clock is that of clock_getcpuclockid(3), to the nanosecond; where there is none, the
        system counts in hundredths of a second.

        Raises:
            BenchError: the process is gone.
        """
        if self.pid is None or not Path("/proc/self/stat").exists():
            return None
        try:
            return time.clock_gettime((~self.pid << 3) | PROCESS_CLOCK)
        except OSError:  # it may have ended, which the file below tells
            pass
        fields = self._read("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mb(self) -> float | None:
        """Its resident memory in MB of 10^6 bytes; None: not known.

        Raises:
            BenchError: the process is gone.
        """
        if self.pid is None or not Path("/proc/self/status").exists():
            return None
        for line in self._read("status").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024 / 1e6
        raise BenchError(f"process {self.pid} has no memory: it has ended")

    def _read(self, name: str) -> str:
        try:
            return Path(f"/proc/{self.pid}/{name}").read_text()
        except OSError as error:
            raise BenchError(f"there is no process {self.pid} on this machine") from error
