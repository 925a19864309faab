"""A real Kerberos centre, MIT's, as a process of its own in a folder: two realms that trust.

Nothing of the machine is changed: configuration, databases, keys and tickets lie in the folder, and
`environment` points the programs and libraries of Kerberos there.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.testing.process.held_port import HeldPort

if TYPE_CHECKING:
    from typing import Self

REALM = "ODRADEK.TEST"
OTHER_REALM = "OTHER.TEST"
SECONDS_MAX = 60

_KRB5_CONF = """\
[libdefaults]
    default_realm = {realm}
    clockskew = {skew}
    dns_lookup_kdc = false
    dns_lookup_realm = false
    dns_canonicalize_hostname = false
    rdns = false
    udp_preference_limit = 1
[realms]
    {realm} = {{
        kdc = 127.0.0.1:{port}
    }}
    {other} = {{
        kdc = 127.0.0.1:{port}
    }}
[domain_realm]
    localhost = {realm}
"""

_KDC_CONF = """\
[kdcdefaults]
    kdc_listen = ""
    kdc_tcp_listen = 127.0.0.1:{port}
[realms]
    {realm} = {{
        database_name = {folder}/{realm}.db
        key_stash_file = {folder}/{realm}.stash
    }}
    {other} = {{
        database_name = {folder}/{other}.db
        key_stash_file = {folder}/{other}.stash
    }}
"""


class Kdc:
    """The centre; a context manager that stops it.

    Args:
        folder: where everything of it lies.
        principals: of `REALM`, without it.
        others: of `OTHER_REALM`.
        skew_s: by how many seconds clocks may differ, and a ticket be too old.

    Attributes:
        environment: variables for whoever uses it.
    """

    def __init__(
        self,
        folder: Path,
        principals: Sequence[str],
        others: Sequence[str] = (),
        *,
        skew_s: int = 300,
    ) -> None:
        self.folder = folder
        self._held = HeldPort()
        port = self._held.port
        names = {"realm": REALM, "other": OTHER_REALM, "folder": folder, "port": port}
        names["skew"] = skew_s
        self.configuration = folder / "krb5.conf"
        self.configuration.write_text(_KRB5_CONF.format(**names))
        (folder / "kdc.conf").write_text(_KDC_CONF.format(**names))
        self.environment: Mapping[str, str] = {
            "KRB5_CONFIG": str(self.configuration),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
            "KRB5RCACHENAME": f"file2:{folder / 'replays'}",
            "KRB5CCNAME": f"FILE:{folder / 'no-tickets'}",
        }
        for realm, own in ((REALM, principals), (OTHER_REALM, others)):
            self.run("kdb5_util", "-r", realm, "create", "-W", "-s", "-P", "master")
            # Each realm has the key by which tickets of the other are made for the first.
            commands = [f"addprinc -pw between krbtgt/{REALM}@{OTHER_REALM}"]
            for name in own:
                commands += [f"addprinc -randkey {name}", f"ktadd -k {self.keytab(name)} {name}"]
            self._administer(realm, commands)
        self._process = subprocess.Popen(
            ["krb5kdc", "-n", "-r", REALM, "-r", OTHER_REALM, "-P", str(folder / "pid")],
            env={**os.environ, **self.environment},
            stdout=(folder / "kdc.log").open("wb"),
            stderr=subprocess.STDOUT,
        )
        self._wait_until_it_listens(port)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(SECONDS_MAX)
        self._held.close()

    def keytab(self, name: str) -> Path:
        """The file of a principal's keys."""
        return self.folder / f"{re.sub('[/@]', '-', name)}.keytab"

    def change_key(self, name: str) -> None:
        """Give a principal of `REALM` a new key, beside the old one in its keytab."""
        self._administer(REALM, [f"ktadd -k {self.keytab(name)} {name}"])

    def tickets(self, name: str, *options: str, realm: str = REALM) -> Path:
        """A file of fresh tickets of a principal, as kinit makes it."""
        cache = self.folder / f"{re.sub('[/@]', '-', '-'.join((name, *options)))}.tickets"
        keytab = str(self.keytab(name))
        self.run("kinit", "-k", "-t", keytab, "-c", str(cache), *options, f"{name}@{realm}")
        return cache

    def run(self, *command: str) -> str:
        """Run a program of Kerberos; returns what it says. Raises: CalledProcessError."""
        return subprocess.run(
            command,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=True,
        ).stdout

    def _administer(self, realm: str, commands: Sequence[str]) -> None:
        for command in commands:
            self.run("kadmin.local", "-r", realm, *command.split())

    def _wait_until_it_listens(self, port: int) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                is_over = self._process.poll() is not None or time.monotonic() > deadline
                log = (self.folder / "kdc.log").read_text()
                assert not is_over, f"krb5kdc did not start: {log}"
                time.sleep(0.02)
