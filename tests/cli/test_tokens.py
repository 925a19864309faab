"""`odradek tokens`: made, listed, logged in with, renewed and ended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.testing import Broker
from odradek.testing.client_settings import User

from .conftest import Odradek

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {"delegation.token.secret.key": "secret-of-all-brokers"}
    with Broker(settings, sasl="SCRAM-SHA-256") as broker:
        yield broker


@pytest.fixture
def as_admin(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODRADEK_COMMAND_CONFIG", written(broker, tmp_path / "admin"))


def written(broker: Broker, path: Path, token: User | None = None) -> str:
    """A file of Java's settings, of the administrator or a token."""
    settings = broker.client_settings("java", user=token)
    if token is not None:
        entry = settings["sasl.jaas.config"]
        settings["sasl.jaas.config"] = entry.removesuffix(";") + ' tokenauth="true";'
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return str(path)


def test_a_token_is_made_used_renewed_and_ended(
    as_admin: None, on_broker: Odradek, broker: Broker, tmp_path: Path
) -> None:
    made = json.loads(
        on_broker("tokens", "create", "--renewer", "bob", "--max-lifetime", "1d", "--json").out
    )
    assert (made["owner"], made["renewers"]) == ("User:admin", ["User:bob"])
    (listed,) = (json.loads(line) for line in on_broker("tokens", "list", "--json").lines)
    assert listed == {key: value for key, value in made.items() if key != "hmac"}
    assert made["hmac"] not in on_broker("tokens", "list").out
    hmac = made["hmac"].encode()
    token = written(broker, tmp_path / "token", User(made["id"], made["hmac"]))
    on_broker("topics", "list", "--command-config", token)
    refused = on_broker("tokens", "create", "--command-config", token, code=1)
    assert refused.err.startswith("odradek: error: the token: ")
    assert "expires at" in on_broker("tokens", "renew", "--period", "2h", stdin=hmac).err
    ended = on_broker("tokens", "expire", stdin=hmac)
    assert ended.err == "the token logs nobody in any more\n"
    assert on_broker("tokens", "list", "--owner", "admin", "--json").out == ""
    assert "refused" in on_broker("topics", "list", "--command-config", token, code=1).err


def test_what_is_no_hmac_is_reported_without_repeating_it(odradek: Odradek) -> None:
    outcome = odradek("tokens", "renew", stdin=b"n\xc3\xb6 hmac\n")
    assert outcome.code == 1
    assert "that is no token's HMAC; it is what 'odradek tokens create' shows" in outcome.err
    assert "n\xf6 hmac" not in outcome.err


def test_a_token_for_people_is_what_their_settings_take(as_admin: None, on_broker: Odradek) -> None:
    shown = on_broker("tokens", "create")
    assert [line.partition("=")[0] for line in shown.lines] == ["sasl.username", "sasl.password"]
    assert "logs in User:admin by SCRAM until" in shown.err
