"""docs/clients.md, from what the tests install: `python -m odradek.tools.docs.clients_page`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]

KERBEROS: Final = "tests/interop, tests/kerberos"
HEAD: Final = """\
# Clients, as tested

Written by `python -m odradek.tools.docs.clients_page` from the files that name the versions; a test
holds it current. Each client is run against odradek, none is imitated. What Apache Kafka's own
clients and tools are answered is compared field by field besides (`make conformance`).

| client | language | version | what is tested | where |
|---|---|---|---|---|
"""

TAIL: Final = """
A client of another version speaks those versions of requests that it has in common with odradek's
([apis.md](apis.md)).

## Other servers

| server | version | what is tested | where |
|---|---|---|---|
"""


class Tested(NamedTuple):
    """A client, and what the tests do with it.

    Attributes:
        version: as a file of the tests names it.
        where: folders or files of tests.
    """

    name: str
    language: str
    version: str
    what: str
    where: str


def pinned(package: str, file: str = "constraints.txt") -> str:
    """The version of a Python package.

    Raises:
        LookupError: the file does not name it.
    """
    return _found(file, rf"^{re.escape(package)}==(\S+)$")


def _found(file: str, pattern: str) -> str:
    found = re.search(pattern, (ROOT / file).read_text(), re.MULTILINE)
    if found is None:
        raise LookupError(f"{file} has nothing like {pattern}")
    return found[1]


def _of_npm(package: str) -> str:
    manifest = json.loads((ROOT / "tests/interop/node/package.json").read_text())
    return str(manifest["dependencies"][package])


def _of_go(module: str, folder: str) -> str:
    return _found(f"tests/interop/{folder}/go.mod", rf"^\t{re.escape(module)} v(\S+)$")


def _of_maven(folder: str) -> str:
    return _found(f"tests/interop/{folder}/pom.xml", r"<kafka.version>(.+)</kafka.version>")


def tested_clients() -> list[Tested]:
    """All clients that tests run."""
    usual = "produce, fetch, both group protocols, share groups"
    return [
        Tested(
            "Apache Kafka's clients and tools",
            "Java",
            _of_maven("java"),
            f"{usual}, streams groups (Kafka Streams), transactions, logins, TLS, Kerberos;"
            " `kafka-acls`, `kafka-configs`, `kafka-groups`, `kafka-share-groups`,"
            " `kafka-streams-groups`, `kafka-transactions`, `kafka-delegation-tokens` and others",
            KERBEROS,
        ),
        Tested(
            "confluent-kafka (librdkafka)",
            "Python, C",
            pinned("confluent-kafka"),
            f"{usual}, transactions, logins, TLS, faults",
            "tests/clients",
        ),
        Tested(
            "kafka-python",
            "Python",
            pinned("kafka-python"),
            "produce, fetch, groups, transactions, admin, logins, TLS, Kerberos, faults",
            "tests/clients, tests/kerberos",
        ),
        Tested(
            "aiokafka",
            "Python",
            pinned("aiokafka"),
            "produce, fetch, groups, transactions, logins, TLS, Kerberos, faults",
            "tests/clients, tests/kerberos",
        ),
        Tested(
            "franz-go",
            "Go",
            _of_go("github.com/twmb/franz-go", "go"),
            "produce, fetch, groups, share groups, transactions, logins, Kerberos,"
            " every message's encoding",
            KERBEROS,
        ),
        Tested(
            "sarama",
            "Go",
            _of_go("github.com/IBM/sarama", "go_logins"),
            "logins of every kind, Kerberos",
            KERBEROS,
        ),
        Tested(
            "KafkaJS",
            "JavaScript",
            _of_npm("kafkajs"),
            "produce, fetch, groups, logins, Kerberos",
            KERBEROS,
        ),
        Tested(
            "kcat (librdkafka)",
            "C",
            "Debian's",
            "produce, fetch, metadata, logins, Kerberos",
            KERBEROS,
        ),
        Tested(
            "Spark's Kafka source and sink",
            "Scala",
            pinned("pyspark"),
            'batches, streams, every option; beside `format("odradek")`',
            "tests/spark",
        ),
        Tested(
            'PySpark, by `format("odradek")`',
            "Python",
            f"{pinned('pyspark')}, {pinned('pyspark', 'constraints-newest-spark.txt')}",
            "batches, streams, sinks, pipelines",
            "tests/spark",
        ),
    ]


def clients_page() -> str:
    """The page's text."""
    rows = "".join(
        f"| {name} | {language} | {version} | {what} | {_places(where)} |\n"
        for name, language, version, what, where in tested_clients()
    )
    zookeeper = _of_maven("java_kafka_3_9")
    registry = _found(
        "testing/process/schema_registry.py",
        r'^VERSION = "(.+)"$',
    )
    servers = (
        f"| Apache Kafka, as a broker of the same cluster, on ZooKeeper | {zookeeper} | replication"
        " and leadership both ways, its controller and ours | `tests/cluster` |\n"
        f"| Apicurio Registry, on our topics | {registry} | Avro, Protobuf, JSON Schema |"
        " `tests/interop` |\n"
        "| MIT's Kerberos KDC | Debian's | logins | `tests/kerberos` |\n"
    )
    return HEAD + rows + TAIL + servers


def _places(where: str) -> str:
    return ", ".join(f"`{each}`" for each in where.split(", "))


if __name__ == "__main__":
    print(clients_page(), end="")
