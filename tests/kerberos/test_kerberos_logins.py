"""Our client, and the commands, log in by Kerberos; and those that may not do not."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import uuid4

import pytest
import trio
from support.kdc import Kdc
from support.ports import nobody_listens

from odradek.broker.network.listener_security import sasl_listeners
from odradek.client import (
    AuthenticationError,
    KafkaClient,
    Producer,
    connection_settings_of,
    open_connection,
)
from odradek.client.network.connection import Connection
from odradek.client.properties import PropertyError
from odradek.common.errors import KafkaError
from odradek.config.broker_config import BrokerConfig
from odradek.config.definition import ConfigError
from odradek.config.dynamic.dynamic_config import DynamicConfig
from odradek.protocol.messages import MetadataRequest
from odradek.runtime.clock import ManualClock
from odradek.testing import Broker, Cluster
from odradek.testing.certificates import broker_settings as tls_settings
from odradek.testing.certificates import make_tls_files

from .conftest import LISTENER, broker_settings, jaas

SECONDS = 60
INVALID = "Authentication failed during authentication due to invalid credentials with SASL"
JAVA = "com.sun.security.auth.module.Krb5LoginModule required"
Settings = Mapping[str, str]


def of_librdkafka(kdc: Kdc, name: str, **further: str) -> Settings:
    known = {"keytab": str(kdc.keytab(name)), "principal": name, **further}
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        **{f"sasl.kerberos.{key.replace('_', '.')}": value for key, value in known.items()},
    }


def of_java(kdc: Kdc, name: str) -> Settings:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": jaas(kdc, name),
    }


def produced(broker: Broker, settings: Settings) -> int:
    """The offset of a record that is produced with these settings. Raises ClientError."""
    return produced_at(broker.bootstrap, settings)


def produced_at(bootstrap: str, settings: Settings) -> int:
    """The same, of whatever broker is there. Raises ClientError."""

    def read(path: str) -> bytes:
        return Path(path).read_bytes()

    made = connection_settings_of(settings, read)
    known = {"authenticate": made.authenticate, "ssl_context": made.ssl_context}

    async def run() -> int:
        with trio.fail_after(SECONDS):
            async with (
                KafkaClient(bootstrap, made.client, **known) as client,
                Producer(client) as producer,
            ):
                await client.refresh_metadata(SECONDS * 1000)
                topic = f"k-{uuid4().hex[:8]}"
                return (await (await producer.send(topic, b"hello")).wait()).offset

    return trio.run(run)


@pytest.mark.parametrize("spelling", [of_librdkafka, of_java])
def test_a_client_with_keys_writes(
    broker: Broker, kdc: Kdc, spelling: Callable[[Kdc, str], Settings]
) -> None:
    assert produced(broker, spelling(kdc, "alice")) == 0


@pytest.mark.usefixtures("tickets")
def test_a_client_with_tickets_writes(broker: Broker) -> None:
    """Those that are where `KRB5CCNAME` says; nothing has to be set but the protocol."""
    assert produced(broker, {"security.protocol": "SASL_PLAINTEXT"}) == 0


def test_a_client_names_its_tickets_as_java_does(broker: Broker, kdc: Kdc) -> None:
    cache = kdc.tickets("alice")
    entry = f'{JAVA} useTicketCache=true ticketCache="{cache}" serviceName=kafka;'
    known = {"security.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": entry}
    assert produced(broker, known) == 0


def test_new_keys_in_the_keytab_count_at_once(
    broker: Broker, kdc: Kdc, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = kdc.tickets("alice", "-S", "kafka/localhost")
    kdc.change_key("kafka/localhost")
    after = kdc.tickets("alice")
    for cache in (before, after):
        monkeypatch.setenv("KRB5CCNAME", f"FILE:{cache}")
        assert produced(broker, {"security.protocol": "SASL_PLAINTEXT"}) == 0


def test_another_realm_is_somebody_by_a_rule(broker: Broker, kdc: Kdc) -> None:
    settings = of_librdkafka(kdc, "bob", principal="bob@OTHER.TEST")
    assert produced(broker, settings) == 0


def test_who_has_logged_in_has_the_rights_of_its_short_name(broker: Broker, kdc: Kdc) -> None:
    with pytest.raises(KafkaError, match="AUTHORIZATION_FAILED"):
        produced(broker, of_librdkafka(kdc, "carol"))


def test_over_tls(kdc: Kdc, tmp_path: Path) -> None:
    files = make_tls_files(tmp_path)
    with Broker({**tls_settings(files), **broker_settings(kdc, "SASL_SSL")}) as broker:
        known = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(files.ca)}
        assert produced(broker, {**of_librdkafka(kdc, "alice"), **known}) == 0


def test_a_client_logs_in_again(kdc: Kdc) -> None:
    with Broker({**broker_settings(kdc), "connections.max.reauth.ms": "1400"}) as broker:
        made = connection_settings_of(of_java(kdc, "alice"), lambda path: b"")
        logins = [trio.Event(), trio.Event()]

        async def authenticate(connection: Connection) -> None:
            assert made.authenticate is not None
            await made.authenticate(connection)
            next(each for each in logins if not each.is_set()).set()

        async def run() -> None:
            with trio.fail_after(SECONDS):
                async with open_connection(
                    "localhost", broker.port, authenticate=authenticate
                ) as connection:
                    broker.advance_time(0.5)  # still within the session
                    await connection.request(MetadataRequest(topics=[]))
                    await logins[1].wait()
                    broker.advance_time(1)  # beyond the first session
                    await connection.request(MetadataRequest(topics=[]))

        trio.run(run)
        assert "has expired" not in broker.log


def test_brokers_log_in_to_each_other(kdc: Kdc) -> None:
    settings = {**broker_settings(kdc), "default.replication.factor": "3"}
    with Cluster(3, settings) as cluster:
        known = of_librdkafka(kdc, "alice")
        assert produced(cluster.brokers[0], {**known, "acks": "all"}) == 0
        for broker in cluster.brokers:
            assert "kafka is kafka/localhost@ODRADEK.TEST by its ticket" in broker.log
            assert "Traceback" not in broker.log


def test_a_command_logs_in(broker: Broker, kdc: Kdc, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in of_java(kdc, "alice").items()))
    produced(broker, of_librdkafka(kdc, "alice"))
    command = [sys.executable, "-m", "odradek", "topics", "list", "--command-config", str(config)]
    listed = subprocess.run(
        [*command, "--bootstrap-server", broker.bootstrap],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert "k-" in listed.stdout, listed.stderr


# --- Who does not come in -------------------------------------------------------------------


def test_without_tickets_there_is_no_login(broker: Broker) -> None:
    with pytest.raises(AuthenticationError, match="No Kerberos credentials available"):
        produced(broker, {"security.protocol": "SASL_PLAINTEXT"})


def test_a_centre_that_is_away_is_named(
    broker: Broker, kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nobody_listens() as address:
        known = kdc.configuration.read_text()
        moved = tmp_path / "krb5.conf"
        moved.write_text(re.sub(r"kdc = \S+", f"kdc = {address}", known))
        monkeypatch.setenv("KRB5_CONFIG", str(moved))
        with pytest.raises(AuthenticationError, match="Cannot contact any KDC for realm 'ODRADEK"):
            # By a keytab of its own: for the others there are tickets already.
            produced(broker, of_librdkafka(kdc, "other/localhost"))


@pytest.mark.parametrize("text", [None, "[libdefaults", ""], ids=["none", "broken", "empty"])
def test_without_a_configuration_of_kerberos_a_broker_says_so_or_starts(
    kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    """Keys need no realm of this machine; a file that cannot be read is an error of Kerberos."""
    path = tmp_path / "krb5.conf"
    if text is not None:
        path.write_text(text)
    monkeypatch.setenv("KRB5_CONFIG", str(path))
    made = DynamicConfig(BrokerConfig.from_sources(broker_settings(kdc)))
    if text == "[libdefaults":
        with pytest.raises(ConfigError, match="Kerberos configuration file"):
            sasl_listeners(made, ManualClock())
    else:
        assert sasl_listeners(made, ManualClock()) is not None


def test_an_unknown_service_has_no_ticket(broker: Broker, kdc: Kdc) -> None:
    with pytest.raises(
        AuthenticationError, match=r"as nobody@localhost: Server nobody/localhost@.* not found"
    ):
        produced(broker, of_librdkafka(kdc, "alice", service_name="nobody"))


def test_a_ticket_for_another_service_is_refused(broker: Broker, kdc: Kdc) -> None:
    with pytest.raises(AuthenticationError, match=INVALID):
        produced(broker, of_librdkafka(kdc, "alice", service_name="other"))


def test_a_missing_keytab_is_named(broker: Broker, kdc: Kdc) -> None:
    with pytest.raises(AuthenticationError, match=r"/nowhere\.keytab"):
        produced(broker, of_librdkafka(kdc, "alice", keytab="/nowhere.keytab"))


def test_a_keytab_of_somebody_else_is_no_use(broker: Broker, kdc: Kdc) -> None:
    with pytest.raises(AuthenticationError, match=r"no login to .* by Kerberos"):
        produced(broker, of_librdkafka(kdc, "carol", keytab=str(kdc.keytab("alice"))))


def test_expired_tickets_are_no_use(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Kdc(tmp_path, ["alice", "kafka/localhost"], skew_s=1) as strict:
        for name, value in strict.environment.items():
            monkeypatch.setenv(name, value)
        cache = strict.tickets("alice", "-l", "1s")
        monkeypatch.setenv("KRB5CCNAME", f"FILE:{cache}")
        deadline = time.monotonic() + SECONDS
        with contextlib.suppress(subprocess.CalledProcessError):
            while time.monotonic() < deadline:  # until the centre gives no more tickets for it
                strict.run("kvno", "-c", str(cache), "kafka/localhost")
        with pytest.raises(AuthenticationError, match="expired"):
            produced(broker, {"security.protocol": "SASL_PLAINTEXT"})


def test_another_realm_is_nobody_by_default(kdc: Kdc) -> None:
    with Broker(broker_settings(kdc)) as broker:
        with pytest.raises(AuthenticationError, match=INVALID):
            produced(broker, of_librdkafka(kdc, "bob", principal="bob@OTHER.TEST"))
        assert "no rule of sasl.kerberos.principal.to.local.rules is for bob@OTHER" in broker.log


# --- What cannot be used --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"gssapi.sasl.jaas.config": ""}, "GSSAPI and has no principal: set listener.name.sasl_pl"),
        (
            {"gssapi.sasl.jaas.config": f"{JAVA} useKeyTab=true keyTab='/no.keytab' principal=k;"},
            "jaas.config cannot be used: Key table file '/no.keytab' not found",
        ),
        ({"gssapi.sasl.jaas.config": f"{JAVA} useKeyTab=true;"}, "useKeyTab=true needs keyTab"),
        (
            {"gssapi.sasl.jaas.config": f"{JAVA} useKeyTab=true keyTab=x;"},
            "useKeyTab=true needs principal",
        ),
        (
            {"gssapi.sasl.jaas.config": f"{JAVA} useTicketCache=true;"},
            "a broker needs useKeyTab=true",
        ),
        ({"gssapi.sasl.jaas.config": f"{JAVA} principal=x;"}, "neither useKeyTab=true nor useTick"),
        ({"sasl.kerberos.service.name": ""}, "no service name is set"),
        (
            {"sasl.kerberos.principal.to.local.rules": "RULE:[1:$2]"},
            r"sasl.kerberos.principal.to.local.rules has 'RULE:\[1:\$2\]'",
        ),
    ],
)
def test_a_broker_that_could_take_no_ticket_does_not_start(
    kdc: Kdc, changes: Settings, sentence: str
) -> None:
    settings = broker_settings(kdc)
    for name, value in changes.items():
        name = f"{LISTENER}.{name}" if name.startswith("gssapi.") else name
        if value:
            settings[name] = value
        else:
            del settings[name]
    with pytest.raises(ConfigError, match=sentence):
        sasl_listeners(DynamicConfig(BrokerConfig.from_sources(settings)), ManualClock())


def test_a_keytab_without_the_principal_is_refused(kdc: Kdc) -> None:
    entry = jaas(kdc, "alice").replace('principal="alice', 'principal="kafka/localhost')
    settings = {**broker_settings(kdc), f"{LISTENER}.gssapi.sasl.jaas.config": entry}
    with pytest.raises(ConfigError, match="No key table entry found for kafka/localhost@ODRADEK"):
        sasl_listeners(DynamicConfig(BrokerConfig.from_sources(settings)), ManualClock())


def test_names_of_the_service_that_differ_are_refused(kdc: Kdc) -> None:
    entry = jaas(kdc, "kafka/localhost", " serviceName=other")
    settings = {**broker_settings(kdc), f"{LISTENER}.gssapi.sasl.jaas.config": entry}
    with pytest.raises(ConfigError, match=r"serviceName=other is not sasl\.kerberos\.service"):
        sasl_listeners(DynamicConfig(BrokerConfig.from_sources(settings)), ManualClock())


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"sasl.jaas.config": f"{JAVA} useTicketCache=true;"}, "no service name is set"),
        (
            {"sasl.jaas.config": f"{JAVA} serviceName=kafka;"},
            "neither useKeyTab=true nor useTicketCache=true",
        ),
        (
            {"sasl.jaas.config": f"{JAVA} serviceName=k;", "sasl.kerberos.keytab": "x"},
            "sasl.jaas.config is set, and so is sasl.kerberos.keytab: set one",
        ),
    ],
)
def test_a_client_that_could_show_no_ticket_is_told(settings: Settings, sentence: str) -> None:
    with pytest.raises(PropertyError, match=sentence):
        connection_settings_of(
            {"security.protocol": "SASL_PLAINTEXT", **settings}, lambda path: b""
        )
