"""`odradek users` and `odradek acls`, from the first user of a new folder to a refused client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.cli.main import main
from odradek.testing.process.broker_process import BrokerProcess

from .conftest import Odradek

PASSWORD = "a, password='with' \\ \"everything\""
QUOTED = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": (
        f'{SCRAM} required username="admin" password="{QUOTED}";'
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker whose first user was there before it."""
    folder = tmp_path_factory.mktemp("first") / "data"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ODRADEK_USER_PASSWORD", PASSWORD)
        assert main(["users", "add", "admin", "--data-dir", str(folder)]) == 0
    with BrokerProcess(folder, settings=SETTINGS) as broker:
        yield broker


def in_javas_words(user: str, quoted: str) -> str:
    quoted = quoted.replace("\\", "\\\\")  # a backslash of a properties file
    return (
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        f'sasl.jaas.config={SCRAM} required username="{user}" password="{quoted}";\n'
    )


def in_librdkafkas_words(user: str, password: str) -> str:
    return (
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanisms=SCRAM-SHA-512\n"
        f"sasl.username={user}\nsasl.password={password}\n"
    )


@pytest.fixture
def admin(tmp_path: Path, on_broker: Odradek, monkeypatch: pytest.MonkeyPatch) -> Odradek:
    """Commands as the first user."""
    path = tmp_path / "admin.properties"
    path.write_text(in_javas_words("admin", QUOTED))
    monkeypatch.setenv("ODRADEK_COMMAND_CONFIG", str(path))
    return on_broker


@pytest.fixture
def as_alice(tmp_path: Path) -> tuple[str, str]:
    path = tmp_path / "alice.properties"
    path.write_text(in_librdkafkas_words("alice", "wonderland"))
    return "--command-config", str(path)


def test_a_user_is_added_logs_in_and_is_removed(admin: Odradek, as_alice: tuple[str, str]) -> None:
    added = admin("users", "add", "alice", "--iterations", 8192, stdin=b"wonderland\n")
    assert added.err == "user alice can log in by SCRAM-SHA-512\n"
    admin("users", "add", "alice", "--mechanism", "scram-sha-256", stdin=b"wonderland\n")
    rows = [json.loads(line) for line in admin("users", "list", "--json").lines]
    assert [(row["user"], row["mechanism"], row["iterations"]) for row in rows] == [
        ("admin", "SCRAM-SHA-512", 4096),
        ("alice", "SCRAM-SHA-256", 4096),
        ("alice", "SCRAM-SHA-512", 8192),
    ]
    refused = admin("users", "list", *as_alice, code=1)
    assert "log in as a super user" in refused.err
    admin("users", "remove", "alice", "--mechanism", "SCRAM-SHA-256")
    admin("users", "remove", "alice")
    gone = admin("users", "remove", "alice", code=1)
    assert gone.err == "odradek: error: there is no user alice; see: odradek users list\n"
    assert "refused the credentials" in admin("topics", "list", *as_alice, code=1).err


def test_acls_are_added_explained_and_removed(admin: Odradek, as_alice: tuple[str, str]) -> None:
    admin("users", "add", "alice", stdin=b"wonderland\n")
    admin("topics", "create", "orders")
    explain = ("acls", "explain", "alice", "Write", "--topic", "orders")
    why = admin(*explain).out
    assert why.startswith("User:alice may not Write topic orders\n  because no ACL is for it")
    assert "\n  unless it is one of the broker's super.users, which no broker tells" in why
    assert "allow.everyone" not in why  # which this broker's file does not have
    assert "unless" not in admin(*explain, "--super-user", "admin").out
    assert admin("produce", "orders", *as_alice, stdin=b"x\n", code=1).err
    command = why.partition("to allow it: odradek ")[2].splitlines()[0].split()
    admin(*command)
    admin("produce", "orders", *as_alice, stdin=b"x\n")
    admin("acls", "add", "--deny", "alice", "--operation", "All", "--topic", "ord", "--prefixed")
    told = json.loads(admin(*explain, "--json").out)
    assert (told["allowed"], told["acl"]["pattern"]) == (False, "Prefixed")
    listed = [
        json.loads(line) for line in admin("acls", "list", "--topic", "orders", "--json").lines
    ]
    assert [row["permission"] for row in listed] == ["Allow", "Deny"]
    assert admin("acls", "list", "--principal", "bob").out == ""
    removed = admin("acls", "remove", "--allow", "alice", "--deny", "alice", "--json")
    assert [json.loads(line) for line in removed.lines] == listed
    assert "no such ACLs" in admin("acls", "remove", "--allow", "alice", code=1).err


def test_users_of_a_folder_are_listed_and_removed_while_no_broker_runs(
    odradek: Odradek, tmp_path: Path
) -> None:
    where = ("--data-dir", tmp_path / "new" / "folder")
    assert odradek("users", "add", "a", *where, stdin=b"x").code == 0
    assert json.loads(odradek("users", "list", "--json", *where).out)["user"] == "a"
    assert odradek("users", "remove", "a", *where).code == 0
    assert odradek("users", "list", "--json", *where).out == ""


def test_a_folder_that_is_no_clusters_is_left_alone(odradek: Odradek, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    for command in (("add", "a"), ("remove", "a"), ("list",)):
        outcome = odradek("users", *command, "--data-dir", tmp_path, stdin=b"x\n")
        assert outcome.code == 1
        assert "holds no cluster's metadata" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("a", "--mechanism", "PLAIN"), "users are added for SCRAM-SHA-256 or SCRAM-SHA-512"),
        (("\u00e9", "--password", "x"), "has a name of ASCII characters"),
        (("a", "--password", ""), "the password is empty"),
        (("a",), "the password is empty"),
    ],
)
def test_what_cannot_be_a_user_is_refused_with_a_reason(
    odradek: Odradek, arguments: tuple[str, ...], sentence: str
) -> None:
    outcome = odradek("users", "add", *arguments)
    assert outcome.code == 1
    assert sentence in outcome.err


def test_without_an_authorizer_acls_say_what_to_do(odradek: Odradek, tmp_path: Path) -> None:
    with BrokerProcess(None) as plain:
        outcome = odradek("acls", "list", "-b", plain.bootstrap)
    assert outcome.code == 1
    assert "the brokers have no ACLs; start them with -o authorizer.class.name=" in outcome.err
