"""Passwords for the metadata store, encoded and decoded by Kafka 3.9's own class and by ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin import ResourceType as Kind
from kazoo.client import KazooClient
from support.java_tools import JavaTools
from support.kafka_jars import KAFKA_3_9_FOLDER, command_of_java

from odradek.metadata_store import znodes
from odradek.security.password_encoder import CBC, GCM, KEY_FACTORIES, PasswordEncoder
from odradek.testing.process.broker_process import BrokerProcess
from odradek.tools.zookeeper_process import ZooKeeperProcess

from .conftest import output_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(880)]

SECRET = "Geheimnis, mit Ö und 🔑"
PASSWORDS = (
    "p",
    "fifteen letters",
    "sixteen letters!",
    "grün, mit:Doppelpunkt und 🔑",
    'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="b";',
)
ENCODERS = [
    PasswordEncoder(SECRET, "PBKDF2WithHmacSHA512", CBC, 128, 4096),
    PasswordEncoder(SECRET, "PBKDF2WithHmacSHA512", GCM, 256, 1024),
    *(PasswordEncoder(SECRET, name, CBC, 192, 1024) for name in list(KEY_FACTORIES)[1:]),
]

KEY = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
ENTRY = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="admin" password="{0}" user_admin="{0}";'
)

Kafkas = Callable[..., list[str]]


@pytest.fixture(scope="module")
def tools_3_9() -> Iterator[JavaTools]:
    """Those of Kafka 3.9."""
    with JavaTools(command_of_java(KAFKA_3_9_FOLDER)) as tools:
        yield tools


@pytest.fixture(scope="module")
def kafkas(tools_3_9: JavaTools) -> Kafkas:
    """What Kafka's encoder makes of texts, with the settings of one of ours."""

    def run(verb: str, encoder: PasswordEncoder, *texts: str, key_factory: str = "") -> list[str]:
        settings = (encoder.secret, key_factory, *map(str, encoder[2:]))
        encoding = tools_3_9.run("odradek.interop.PasswordEncoding", verb, *settings, *texts)
        return output_of(encoding).splitlines()

    return run


def test_kafka_reads_what_we_encode(kafkas: Kafkas) -> None:
    ours = [encoder.encode(password) for encoder in ENCODERS for password in PASSWORDS]
    for reader in ENCODERS[:2]:  # each of Kafka's reads texts of its own cipher only
        mine = [text for text in ours if f"cipherAlgorithm:{reader.cipher_algorithm}" in text]
        read = kafkas("decode", reader, *mine)
        assert read == list(PASSWORDS) * (len(mine) // len(PASSWORDS))


@pytest.mark.parametrize("encoder", ENCODERS, ids=repr)
def test_we_read_what_kafka_encodes(kafkas: Kafkas, encoder: PasswordEncoder) -> None:
    factory = encoder.key_factory_algorithm
    theirs = kafkas("encode", encoder, *PASSWORDS, key_factory=factory)
    # Whatever we would encode with: what stands in the text counts.
    other = PasswordEncoder(SECRET, "PBKDF2WithHmacSHA1", CBC, 256, 2000)
    assert [other.decode(text) for text in theirs] == list(PASSWORDS)
    assert [names_of(text) for text in theirs] == [names_of(encoder.encode("p"))] * len(theirs)


def test_default_is_kafkas(kafkas: Kafkas) -> None:
    (theirs,) = kafkas("encode", ENCODERS[0], "p")
    assert f"keyFactoryAlgorithm:{next(iter(KEY_FACTORIES))}" in theirs.split(",")


def names_of(encoded: str) -> dict[str, int]:
    """The fields, and how long what is random in them is."""
    pairs = (pair.split(":") for pair in encoded.split(","))
    lengths = {name: len(value) for name, value in pairs}
    for varies in ("encryptedPassword", "passwordLength"):
        lengths[varies] = 0
    return lengths


def test_password_set_by_kafkas_tool_in_zookeeper_and_then_by_us(
    kafkas: Kafkas, tools_3_9: JavaTools, tmp_path: Path
) -> None:
    """The way by which the first secrets get there: with Kafka's tool, before the broker runs."""
    server = ZooKeeperProcess(tmp_path / "zookeeper")
    server.start()
    try:
        added = tmp_path / "added.properties"
        added.write_text(f"{KEY}={ENTRY.format('from-the-tool')}\npassword.encoder.secret=s3cret\n")
        tool = ("kafka.admin.ConfigCommand", "--zookeeper", server.address, "--alter")
        broker_1 = ("--entity-type", "brokers", "--entity-name", "1")
        output_of(tools_3_9.run(*tool, *broker_1, "--add-config-file", str(added)))
        settings = {
            "zookeeper.connect": server.address,
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.enabled.mechanisms": "PLAIN",
            KEY: ENTRY.format("in-the-file"),
            "password.encoder.secret": "s3cret",
        }
        with BrokerProcess(tmp_path / "data", settings=settings) as broker:
            set_password(broker.bootstrap, "from-the-tool", "set-later")
            set_password(broker.bootstrap, "set-later", "and-again")
        encoded = znodes.decode_config(node(server.address, "/config/brokers/1"))[KEY]
        assert "and-again" not in encoded
        assert kafkas("decode", ENCODERS[0]._replace(secret="s3cret"), encoded) == [
            ENTRY.format("and-again")
        ]
    finally:
        server.kill()


def set_password(bootstrap: str, current: str, new: str) -> None:
    """Log in with one password, and set the other."""
    login = {"sasl.mechanism": "PLAIN", "sasl.username": "admin", "sasl.password": current}
    admin = AdminClient(
        {"bootstrap.servers": bootstrap, "security.protocol": "SASL_PLAINTEXT", **login}
    )
    setting = ConfigEntry(KEY, ENTRY.format(new), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(Kind.BROKER, "1", incremental_configs=[setting])
    (done,) = admin.incremental_alter_configs([resource]).values()
    done.result(60)


def node(address: str, path: str) -> bytes:
    client = KazooClient(address)
    client.start()
    data, _ = client.get(path)
    client.stop()
    client.close()
    return bytes(data)
