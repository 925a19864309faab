"""Secrets of every kind, right and wrong, and then a search for them in all that can be read.

Each secret has a word in it that nothing else has. Logs at DEBUG, answers and errors that clients
see, what commands print, metrics, and what the recorder keeps of the traffic must not have it, as
it is or in base64.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import jwt
import pytest
import trio
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource as PythonResource
from kafka.admin import ConfigResourceType as Kind

from odradek.cli.main import main
from odradek.client import KafkaClient, TokenAdmin, connection_settings_of
from odradek.config.definition import ConfigType
from odradek.config.tables.broker_table import BROKER_DEFINITIONS
from odradek.testing import Recorder
from odradek.testing.certificates import make_tls_files
from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.process.secret_settings import SECRET_SETTINGS

pytestmark = pytest.mark.clients

SECONDS = 60
WORD = "c4naryw0rd"
"""In every secret, and nowhere else."""
FORMS = (
    WORD,
    *(base64.b64encode(b" " * at + WORD.encode()).decode()[at + at : -4] for at in range(3)),
)
"""As it is, and what base64 makes of it wherever in a text it begins."""

LISTENER = "listener.name.sasl_plaintext"
MODULES = "org.apache.kafka.common.security."
PLAIN = f"{MODULES}plain.PlainLoginModule required"
SCRAM = f"{MODULES}scram.ScramLoginModule required"


def secret(name: str) -> str:
    return f"{WORD}-{name}-{WORD}"


def told(text: str | bytes) -> list[str]:
    """Where a secret stands in something, with what is around."""
    if isinstance(text, bytes):
        text = text.decode("latin-1")
    return [text[max(0, at - 100) : at + 40] for form in FORMS if (at := text.find(form)) >= 0]


def test_the_search_finds_secrets() -> None:
    for before in ("", "x", "xy", "xyz"):
        assert told(base64.b64encode((before + secret("a")).encode()))
        assert told(f"{before}{secret('a')}")
    assert not told("nothing of the kind")


def test_every_secret_setting_is_known_as_one_to_the_recorder() -> None:
    secrets = {
        name for name, each in BROKER_DEFINITIONS.items() if each.type is ConfigType.PASSWORD
    }
    assert {name for name in secrets if not name.endswith(SECRET_SETTINGS)} == set()


KEY = rsa.generate_private_key(65537, 2048)
"""Of an identity provider."""
LISTENERS = "SASL_PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0"


class Running(NamedTuple):
    """A broker that knows secrets, and a recorder before it."""

    broker: BrokerProcess
    recorder: Recorder
    folder: Path
    seen: list[str]

    def login(self, mechanism: str, name: str, password: str, **more: str) -> dict[str, str]:
        """The settings of a client, as Java has them."""
        module = PLAIN if mechanism == "PLAIN" else SCRAM
        options = " ".join(f'{key}="{text}"' for key, text in more.items())
        return {
            "bootstrap.servers": self.recorder.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'{module} username="{name}" password="{password}" {options};',
        }

    def of_librdkafka(self, name: str, password: str) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.recorder.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": name,
            "sasl.password": password,
            "error_cb": lambda error: self.seen.append(error.str()),
            "log_level": 0,
        }


def broker_settings(folder: Path) -> dict[str, str]:
    """All secrets that a broker can start with."""
    files = make_tls_files(folder / "tls")
    encrypt(Path(files.keystore), secret("key"))
    admin = secret("admin")
    key = jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
    (folder / "keys.json").write_text(json.dumps({"keys": [{**key, "kid": "one"}]}))
    return {
        "listeners": LISTENERS,
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "connection.failed.authentication.delay.ms": "10",
        "sasl.oauthbearer.jwks.endpoint.url": f"file://{folder}/keys.json",
        "sasl.oauthbearer.client.credentials.client.id": "broker",
        "sasl.oauthbearer.client.credentials.client.secret": secret("client"),
        **{
            f"listener.name.{name}.plain.sasl.jaas.config": (
                f'{PLAIN} username="admin" password="{admin}" user_admin="{admin}";'
            )
            for name in ("sasl_plaintext", "sasl_ssl")
        },
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": files.keystore,
        "ssl.key.password": secret("key"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": files.ca,
        "password.encoder.secret": secret("encoder"),
        "password.encoder.old.secret": secret("old-encoder"),
        "delegation.token.secret.key": secret("tokens"),
        "zookeeper.digest": f"admin:{secret('digest')}",
        "zookeeper.ssl.keystore.password": secret("zookeeper"),
        "zookeeper.ssl.truststore.password": secret("zookeeper"),
        "my.own.pasword": secret("of-nobody"),
    }


def encrypt(keystore: Path, password: str) -> None:
    """Have the key of a PEM file encrypted."""
    pem = keystore.read_bytes()
    key = serialization.load_pem_private_key(pem, None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password.encode()),
    )
    keystore.write_bytes(encrypted + pem[pem.index(b"-----BEGIN CERTIFICATE") :])


def write_properties(path: Path, settings: Mapping[str, str]) -> Path:
    escaped = {name: text.replace("\\", "\\\\") for name, text in settings.items()}
    path.write_text("".join(f"{name}={text}\n" for name, text in escaped.items()))
    return path


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("secrets")
    file = write_properties(folder / "server.properties", broker_settings(folder))
    arguments = ["-v", "--config", str(file), "--metrics", "127.0.0.1:0"]
    with (
        BrokerProcess(
            folder / "data", settings={"listeners": LISTENERS}, arguments=arguments
        ) as broker,
        Recorder(
            broker.bootstrap, capture=folder / "run.capture", pcap=folder / "run.pcapng"
        ) as recorder,
    ):
        yield Running(broker, recorder, folder, [])


def connect(running: Running, given: dict[str, str], act: Callable[..., Any] | None = None) -> None:
    """Have our client log in, and do something; what it raises is seen."""

    async def run() -> None:
        made = connection_settings_of(given, lambda path: Path(path).read_bytes())
        running.seen.append(repr(made) + repr(vars(made.authenticate)))
        assert made.bootstrap is not None
        with trio.fail_after(SECONDS):
            async with KafkaClient(
                made.bootstrap, made.client, authenticate=made.authenticate
            ) as client:
                running.seen.append(repr(client))
                await client.refresh_metadata(5000)
                if act is not None:
                    await act(client)

    try:
        trio.run(run)
    except Exception as error:
        running.seen.append(f"{error!r} {error} {error.__cause__!r} {error.__context__!r}")


def log_in(running: Running) -> None:
    """By every mechanism, rightly and wrongly."""

    async def make_token(client: KafkaClient) -> None:
        made = await TokenAdmin(client, 5000).create()
        running.seen.append(repr(made))
        (running.folder / "token").write_text(f"{made.token.token_id} {made.password}")

    connect(running, running.login("PLAIN", "admin", secret("admin")), make_token)
    token_id, hmac = (running.folder / "token").read_text().split()
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        for name in ("admin", "nobody"):
            connect(running, running.login(mechanism, name, secret("wrong")))
    by_token = running.login("SCRAM-SHA-256", token_id, hmac, tokenauth="true")
    connect(running, by_token)
    connect(running, running.login("SCRAM-SHA-256", token_id, secret("x"), tokenauth="true"))
    now = int(time.time())
    claims = {"sub": "alice", "jti": secret("claim"), "iat": now, "exp": now + 60}
    tokens = (
        jwt.encode(claims, KEY, "RS256", {"kid": "one"}),
        jwt.encode(claims, secret("of-another"), "HS256", {"kid": "one"}),
        jwt.encode(claims, None, "none"),
        secret("malformed"),
    )
    for token in tokens:
        (running.folder / "jwt").write_text(token)
        given = running.login("OAUTHBEARER", "", "")
        given["sasl.jaas.config"] = f"{MODULES}oauthbearer.OAuthBearerLoginModule required;"
        given["sasl.oauthbearer.token.endpoint.url"] = f"file://{running.folder}/jwt"
        connect(running, given)


MALFORMED = {
    f"{LISTENER}.plain.sasl.jaas.config": f'{PLAIN} user_admin="{secret("jaas")}" no semicolon',
    f"{LISTENER}.scram-sha-256.sasl.jaas.config": f"{secret('jaas')} is no module",
    f"{LISTENER}.scram-sha-512.sasl.jaas.config": f"{SCRAM} password=two {secret('words')};",
    "listener.name.sasl_ssl.ssl.keystore.key": f"-----BEGIN PRIVATE KEY-----{secret('pem')}",
    "listener.name.sasl_ssl.ssl.key.password": secret("of-another-key"),
    "listener.name.sasl_ssl.ssl.keystore.password": secret("of-no-store"),
    "listener.name.sasl_ssl.ssl.truststore.certificates": secret("certificates"),
    "sasl.jaas.config": f'{PLAIN} user_admin="{secret("jaas")}";',
    "password.encoder.secret": secret("encoder"),
    "ssl.key.password": secret("key"),
    "zookeeper.digest": secret("digest"),
}


def alter(running: Running) -> None:
    """Change settings, to what can be and to what cannot."""
    admin = AdminClient(running.of_librdkafka("admin", secret("admin")))
    right = f'{PLAIN} user_admin="{secret("admin")}" user_alice="{secret("set-later")}" '
    right += f'username="admin" password="{secret("admin")}";'
    changes = {
        **MALFORMED,
        f"{LISTENER}.plain.sasl.jaas.config": right,
        "my.own.ssl.key.password": WORD,
    }
    refused = 0
    for name, text in [*MALFORMED.items(), *changes.items()]:
        setting = ConfigEntry(name, text, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[setting])
        (done,) = admin.incremental_alter_configs([resource]).values()
        try:
            done.result(SECONDS)
        except KafkaException as error:
            refused += 1
            running.seen.append(str(error))
    assert refused >= len(MALFORMED)
    connect(running, running.login("PLAIN", "alice", secret("set-later")))
    (done,) = admin.describe_configs([ConfigResource(ResourceType.BROKER, "1")]).values()
    entries = done.result(SECONDS)
    assert entries[f"{LISTENER}.plain.sasl.jaas.config"].is_sensitive
    running.seen.append(repr([(each.name, each.value, each.synonyms) for each in entries.values()]))


def log_everything(running: Running) -> None:
    admin = KafkaAdminClient(
        bootstrap_servers=running.broker.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="admin",
        sasl_plain_password=secret("admin"),
    )
    answer = admin.alter_configs([PythonResource(Kind.BROKER_LOGGER, "1", {"root": "DEBUG"})])
    assert answer == {"broker_logger": {"1": "OK"}}
    admin.close()


def run_commands(running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    """The commands that log in, with files that are right, wrong and malformed."""
    right = running.login("PLAIN", "admin", secret("admin"))
    files = {
        "right": right,
        "wrong": running.login("PLAIN", "admin", secret("wrong")),
        "malformed": {**right, "sasl.jaas.config": f'{PLAIN} username="a" password="{WORD}" x'},
        "no-quotes": {**right, "sasl.jaas.config": f"{PLAIN} username=a password=two {WORD};"},
        "no-module": {**right, "sasl.jaas.config": f"{WORD} required username=a password=b;"},
        "misspelt": {**right, "sasl.jass.config": secret("misspelt")},
        "key": {**right, "security.protocol": "SASL_SSL", "ssl.keystore.key": secret("pem")},
        "no-mechanism": {**right, "sasl.mechanism": "GSSAPI"},
    }
    codes = {}
    for name, settings in files.items():
        path = write_properties(running.folder / f"{name}.properties", settings)
        codes[name] = main(["topics", "list", "--command-config", str(path)])
    assert codes == {name: int(name != "right") for name in files}
    path = running.folder / "right.properties"
    added = ["users", "add", "bob", "--command-config", str(path), "--password", secret("bob")]
    assert main(added) == 0
    assert main([*added, "--iterations", "1"]) != 0
    connect(running, running.login("SCRAM-SHA-512", "bob", secret("bob")))
    running.seen.extend(capsys.readouterr())


def test_no_secret_is_disclosed(
    running: Running, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "odradek")
    log_everything(running)
    log_in(running)
    run_commands(running, capsys)
    alter(running)
    (url,) = running.broker.metrics_urls
    with urllib.request.urlopen(url, timeout=SECONDS) as page:
        metrics = page.read()
    assert running.broker.stop() == 0
    running.recorder.close()
    hmac = (running.folder / "token").read_text().split()[1]
    places = {
        "log": running.broker.log,
        "ready": running.broker.ready_line,
        "log of clients": caplog.text,
        "metrics": metrics,
        "seen": "\n".join(running.seen),
        "capture": (running.folder / "run.capture").read_bytes(),
        "pcap": (running.folder / "run.pcapng").read_bytes(),
        "store": b"".join(p.read_bytes() for p in (running.folder / "data").glob("*metadata*")),
    }
    for words in ("Invalid username", "SCRAM-SHA-256 failed", "an access token is refused"):
        assert words in running.broker.log  # so what is searched tells of logins
    assert {name: found for name, text in places.items() if (found := told(text))} == {}
    for name, text in places.items():
        raw = text.encode() if isinstance(text, str) else text
        assert hmac.encode() not in raw, name
        assert base64.b64decode(hmac) not in raw, name


REFUSED_AT_THE_START = {
    "jaas": {f"{LISTENER}.plain.sasl.jaas.config": f'{PLAIN} user_a="{WORD}" and more'},
    "module": {f"{LISTENER}.plain.sasl.jaas.config": f"{WORD} {WORD} {WORD};"},
    "no quotes": {f"{LISTENER}.plain.sasl.jaas.config": f"{PLAIN} user_a=two {WORD};"},
    "other module": {f"{LISTENER}.plain.sasl.jaas.config": f"{WORD} required user_a=b;"},
    "general jaas": {"sasl.jaas.config": f'{PLAIN} user_a="{WORD}";'},
    "key password": {"ssl.key.password": secret("wrong")},
    "store password": {"ssl.keystore.password": secret("of-no-store")},
    "trust password": {"ssl.truststore.password": secret("of-no-store")},
    "key": {"ssl.keystore.key": f"-----BEGIN PRIVATE KEY-----{WORD}-----END PRIVATE KEY-----"},
    "old secret": {"password.encoder.secret": "", "password.encoder.old.secret": secret("old")},
    "passphrase": {"sasl.oauthbearer.assertion.private.key.passphrase": secret("passphrase")},
    "oauth": {
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "gopher://x",
    },
}


@pytest.mark.slow  # a broker for each
def test_a_refusal_to_start_discloses_no_secret(tmp_path: Path) -> None:
    usual = broker_settings(tmp_path)

    def start(name: str) -> tuple[int, str]:
        changed = {**usual, **REFUSED_AT_THE_START[name]}
        path = write_properties(tmp_path / f"{name}.properties", changed)
        command = [sys.executable, "-m", "odradek", "serve", "-v", "--ephemeral"]
        done = subprocess.run(
            [*command, "--config", str(path), "-o", "broker.id=1"],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    with ThreadPoolExecutor(2) as pool:
        ends = dict(zip(REFUSED_AT_THE_START, pool.map(start, REFUSED_AT_THE_START), strict=True))
    assert {code for code, _ in ends.values()} == {1, 2}  # 2: it could not even be read
    assert {name: found for name, (_, text) in ends.items() if (found := told(text))} == {}
    assert not [text for _, text in ends.values() if "Traceback" in text]
