"""Kerberos as it is: MIT's centre in a process, and a broker that takes its tickets.

`make test-kerberos` runs these tests, with what they need; other runs do not collect them, for the
package `gssapi` is made of C and Debian's headers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.kdc import Kdc

from odradek.testing import Broker

IS_WANTED = "ODRADEK_TEST_KERBEROS" in os.environ
collect_ignore_glob = [] if IS_WANTED else ["test_*.py"]

LISTENER = "listener.name.sasl_plaintext"
PRINCIPALS = ("kafka/localhost", "other/localhost", "alice", "carol")


@pytest.fixture(scope="session")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """The centre; this process and those that it starts use it from now on."""
    with (
        Kdc(tmp_path_factory.mktemp("kdc"), PRINCIPALS, ["bob"]) as kdc,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in kdc.environment.items():
            patch.setenv(name, value)
        yield kdc


def jaas(kdc: Kdc, name: str, further: str = "") -> str:
    """A JAAS entry with the keys of a principal, as Java reads it, too."""
    return (
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
        f'keyTab="{kdc.keytab(name)}" principal="{name}@ODRADEK.TEST"{further};'
    )


def broker_settings(kdc: Kdc, protocol: str = "SASL_PLAINTEXT") -> dict[str, str]:
    return {
        "listeners": f"{protocol}://localhost:0",
        "security.inter.broker.protocol": protocol,
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "connection.failed.authentication.delay.ms": "20",
        f"listener.name.{protocol.lower()}.gssapi.sasl.jaas.config": jaas(kdc, "kafka/localhost"),
    }


@pytest.fixture(scope="module")
def broker(kdc: Kdc) -> Iterator[Broker]:
    """One where alice may do everything, and nobody else may do anything."""
    rights = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:alice;User:kafka;User:bob-of-others",
        "sasl.kerberos.principal.to.local.rules": (
            r"RULE:[1:$1@$0](bob@OTHER\.TEST)s/@.*/-of-others/,DEFAULT"
        ),
    }
    with Broker({**broker_settings(kdc), **rights}) as broker:
        yield broker
        assert "Traceback" not in broker.log


@pytest.fixture(scope="session")
def credentials(kdc: Kdc) -> Any:
    """Alice's, for tokens that are made by hand."""
    from gssapi import Credentials, Name, NameType

    return Credentials(
        name=Name("alice", NameType.kerberos_principal),
        usage="initiate",
        store={"client_keytab": str(kdc.keytab("alice")), "ccache": "MEMORY:by hand"},
    )


@pytest.fixture
def tickets(kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Alice's tickets lie where every client looks for some."""
    cache = kdc.tickets("alice")
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{cache}")
    return cache
