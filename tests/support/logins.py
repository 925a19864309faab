"""Ways to log in to a broker, as programs of other languages read them, and what these report."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from odradek.client.security.jaas import LOGIN_MODULES, format_jaas

DONE, REFUSED = "produced and consumed", "authentication failed"
GO_FOLDER = Path(__file__).parents[1] / "interop" / "go_logins"
BUILD_SECONDS_MAX = 600
JAVA_TOKENS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


class Login(NamedTuple):
    """Who logs in, and how. What a mechanism has no use for is empty.

    Attributes:
        name: of this way, in a report.
        mechanism: of SASL; empty where a certificate says who it is.
        user: a name, the id of a delegation token, or a principal of Kerberos.
        password: of the user, or of the token.
        is_token: whether the client says that it is a delegation token.
        access_token: of an identity provider.
        certificate: the file of the client's own.
        key: the file of its private key.
        keystore: the file that has both.
        configuration: of Kerberos, a file.
        keytab: a file.
        realm: of the user.
        service: whom a ticket is requested for.
    """

    name: str
    mechanism: str = ""
    user: str = ""
    password: str = ""
    is_token: bool = False
    access_token: str = ""
    certificate: str = ""
    key: str = ""
    keystore: str = ""
    configuration: str = ""
    keytab: str = ""
    realm: str = ""
    service: str = ""


class Plan(NamedTuple):
    """What a program tries at a broker.

    Attributes:
        bootstrap: the broker.
        protocol: of its listener.
        topic: is there.
        logins: one after the other.
        authority: its certificate, a file; empty without TLS.
    """

    bootstrap: str
    protocol: str
    topic: str
    logins: list[Login]
    authority: str = ""

    def as_file(self, path: Path) -> str:
        """Write it for the programs in Go and JavaScript; returns the path."""
        logins = [login._asdict() for login in self.logins]
        path.write_text(json.dumps({**self._asdict(), "logins": logins}))
        return str(path)

    def as_java_files(self, folder: Path) -> list[str]:
        """Write the settings of each login for Java's clients; returns the paths."""
        paths = []
        for login in self.logins:
            path = folder / login.name
            settings = {
                "bootstrap.servers": self.bootstrap,
                "security.protocol": self.protocol,
                **_java_tls(login, self.authority),
                **_java_login(login, folder),
            }
            lines = (f"{name}={text}\n" for name, text in settings.items())
            path.write_text("".join(lines).replace("\\", "\\\\"))
            paths.append(str(path))
        return paths


def _java_tls(login: Login, authority: str) -> Mapping[str, str]:
    if not authority:
        return {}
    trusted = {"ssl.truststore.type": "PEM", "ssl.truststore.location": authority}
    if not login.keystore:
        return trusted
    return {**trusted, "ssl.keystore.type": "PEM", "ssl.keystore.location": login.keystore}


def _java_login(login: Login, folder: Path) -> Mapping[str, str]:
    if not login.mechanism:
        return {}
    options: dict[str, str] = {}
    further: dict[str, str] = {}
    if login.mechanism == "OAUTHBEARER":
        further["sasl.oauthbearer.token.endpoint.url"] = token_file(folder, login).as_uri()
        further["sasl.login.callback.handler.class"] = JAVA_TOKENS
    elif login.mechanism == "GSSAPI":
        principal = f"{login.user}@{login.realm}"
        options = {"useKeyTab": "true", "storeKey": "true"}
        options |= {"keyTab": login.keytab, "principal": principal}
        further["sasl.kerberos.service.name"] = login.service
    else:
        options = {"username": login.user, "password": login.password}
        if login.is_token:
            options["tokenauth"] = "true"
    entry = format_jaas(LOGIN_MODULES[login.mechanism], options)
    return {"sasl.mechanism": login.mechanism, "sasl.jaas.config": entry, **further}


def token_file(folder: Path, login: Login) -> Path:
    """A file of the login's access token."""
    path = folder / f"{login.name}.token".replace(" ", "-")
    path.write_text(login.access_token)
    return path


def reported(output: str) -> dict[str, str]:
    """What came of each client and login, from a program's output."""
    return dict(line.split(": ", 1) for line in output.splitlines())


def all_of(outcome: str, client: str, logins: Iterable[Login]) -> dict[str, str]:
    """What a program reports where the same comes of all logins of a client."""
    return {f"{client} {login.name}": outcome for login in logins}


def build_go_logins(folder: Path) -> str:
    """The path of the program of franz-go and sarama, built into a folder."""
    go = shutil.which("go")
    version = "tests/interop/go_logins/go.mod names"
    assert go is not None, f"`go` is not installed: install Go, of the version that {version}"
    program = folder / "logins"
    done = subprocess.run(
        [go, "build", "-o", str(program), "."],
        cwd=GO_FOLDER,
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, f"go build failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return str(program)
