"""`odradek quotas`: set, listed and removed."""

from __future__ import annotations

import json

import pytest

from .conftest import Odradek

pytestmark = pytest.mark.clients


def listed(on_broker: Odradek, *options: object) -> list[tuple[dict[str, str], dict[str, float]]]:
    rows = map(json.loads, on_broker("quotas", "list", "--json", *options).lines)
    return [(row["entity"], row["quotas"]) for row in rows]


def test_quotas_are_set_listed_and_removed(on_broker: Odradek) -> None:
    assert listed(on_broker) == []
    of_alice = ("--user", "alice")
    done = on_broker("quotas", "set", *of_alice, "producer_byte_rate=1024", "request_percentage=50")
    assert done.err == "user alice has producer_byte_rate=1024, request_percentage=50\n"
    both = ("--user-defaults", "--client-id", "a/b")
    on_broker("quotas", "set", *both, "consumer_byte_rate=2.5e6")
    on_broker("quotas", "set", "--ip", "127.0.0.1", "connection_creation_rate=500")
    assert listed(on_broker, *of_alice) == [
        ({"user": "alice"}, {"producer_byte_rate": 1024.0, "request_percentage": 50.0})
    ]
    assert listed(on_broker, "--client-id", "a/b") == [
        ({"user": None, "client-id": "a/b"}, {"consumer_byte_rate": 2_500_000.0})
    ]
    shown = on_broker("quotas", "list").out
    assert "(default)" in shown
    assert "bytes a second" in shown
    on_broker("quotas", "remove", *of_alice, "request_percentage")
    assert listed(on_broker, *of_alice) == [({"user": "alice"}, {"producer_byte_rate": 1024.0})]
    gone = on_broker("quotas", "remove", *of_alice, "request_percentage", code=1)
    assert "user alice has no quota request_percentage" in gone.err
    for entity in (of_alice, both, ("--ip", "127.0.0.1")):
        on_broker("quotas", "remove", *entity)
    assert listed(on_broker) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("producer_byte_rate=1",), "say whose: --user, --client-id or --ip"),
        (("--user", "a", "producer_byte_rat=1"), "there is no quota 'producer_byte_rat'; it is"),
        (("--user", "a", "producer_byte_rate"), "is no quota; write QUOTA=NUMBER"),
        (("--user", "a", "producer_byte_rate=nan"), "is no quota; write QUOTA=NUMBER"),
        (("--user", "a", "--user-defaults", "producer_byte_rate=1"), "exclude each other"),
        (("--ip", "10.0.0.1", "--user", "a", "producer_byte_rate=1"), "--ip has quotas of its"),
    ],
)
def test_what_is_no_quota_is_refused_with_a_reason(
    odradek: Odradek, arguments: tuple[str, ...], sentence: str
) -> None:
    outcome = odradek("quotas", "set", *arguments)
    assert outcome.code == 1
    assert sentence in outcome.err
