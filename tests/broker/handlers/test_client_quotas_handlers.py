"""Describe and AlterClientQuotas: rules and messages of Kafka's ClientQuotaControlManager."""

from __future__ import annotations

import pytest

from odradek.common.errors import ErrorCode
from odradek.metadata_store import znodes
from odradek.protocol import messages

EXACT, DEFAULT, ANY = 0, 1, 2


async def alter(bench, *entries, validate_only=False, version=1):
    """Each entry: names by type, values by key (None: remove)."""
    make = messages.AlterClientQuotasRequest
    answer = await bench.client.call(
        make(
            entries=[
                make.EntryData(
                    entity=[
                        make.EntityData(entity_type=kind, entity_name=name)
                        for kind, name in entity.items()
                    ],
                    ops=[
                        make.OpData(key=key, value=value or 0.0, remove=value is None)
                        for key, value in (values if isinstance(values, list) else values.items())
                    ],
                )
                for entity, values in entries
            ],
            validate_only=validate_only,
        ),
        version,
    )
    return [(entry.error_code, entry.error_message) for entry in answer.entries]


async def describe(bench, *components, strict=False, version=1):
    make = messages.DescribeClientQuotasRequest
    answer = await bench.client.call(
        make(
            components=[
                make.ComponentData(entity_type=kind, match_type=how, match=name)
                for kind, how, name in components
            ],
            strict=strict,
        ),
        version,
    )
    if answer.error_code:
        assert answer.entries is None
        return answer.error_code, answer.error_message
    return sorted(
        (
            [(each.entity_type, each.entity_name or "<default>") for each in entry.entity],
            {each.key: each.value for each in entry.values},
        )
        for entry in answer.entries
    )


async def stored(bench, path):
    (node,) = await bench.broker.metadata_store.get_many([f"/config/{path}"])
    return None if node is None else znodes.decode_config(node.data)


ALICE = {"user": "alice"}


@pytest.mark.parametrize("version", [0, 1])
async def test_what_is_set_is_described(bench, version):
    values = {"producer_byte_rate": 1024.0, "request_percentage": 12.5}
    assert await describe(bench, version=version) == []
    assert await alter(bench, (ALICE, values), version=version) == [(ErrorCode.NONE, None)]
    assert await describe(bench, version=version) == [([("user", "alice")], values)]
    assert await alter(bench, (ALICE, {"producer_byte_rate": None}), version=version)
    assert await describe(bench) == [([("user", "alice")], {"request_percentage": 12.5})]


async def test_entities_are_where_kafka_has_them(bench):
    rate = {"consumer_byte_rate": 5.0}
    by_path = {
        "users/alice": ALICE,
        "users/a%2Fb%20%7E": {"user": "a/b ~"},
        "users/<default>": {"user": None},
        "users/%3Cdefault%3E": {"user": "<default>"},
        "clients/c": {"client-id": "c"},
        "clients/<default>": {"client-id": None},
        "users/bob/clients/c%2A": {"client-id": "c*", "user": "bob"},
        "users/<default>/clients/<default>": {"client-id": None, "user": None},
    }
    outcomes = await alter(bench, *((entity, rate) for entity in by_path.values()))
    assert outcomes == [(ErrorCode.NONE, None)] * len(by_path)
    for path in by_path:
        assert await stored(bench, path) == {"consumer_byte_rate": "5"}, path
    assert await alter(bench, ({"ip": "10.0.0.1"}, {"connection_creation_rate": 7.0}))
    assert await stored(bench, "ips/10.0.0.1") == {"connection_creation_rate": "7"}
    assert len(await describe(bench)) == len(by_path) + 1


async def test_filters(bench):
    rate = {"producer_byte_rate": 1.0}
    both = {"user": "alice", "client-id": "c"}
    await alter(bench, (ALICE, rate), ({"user": None}, rate), (both, rate))
    alice = ([("user", "alice")], rate)
    default = ([("user", "<default>")], rate)
    alices_c = ([("client-id", "c"), ("user", "alice")], rate)
    assert await describe(bench, ("user", EXACT, "alice")) == sorted([alice, alices_c])
    assert await describe(bench, ("user", EXACT, "alice"), strict=True) == [alice]
    assert await describe(bench, ("user", DEFAULT, None)) == [default]
    assert await describe(bench, ("user", ANY, None), strict=True) == sorted([alice, default])
    assert await describe(bench, ("client-id", ANY, None)) == [alices_c]
    assert await describe(bench, ("ip", ANY, None)) == []


@pytest.mark.parametrize(
    ("components", "error", "message"),
    [
        ([("", EXACT, "a")], ErrorCode.INVALID_REQUEST, "Invalid empty entity type."),
        (
            [("user", EXACT, "a"), ("user", ANY, None)],
            ErrorCode.INVALID_REQUEST,
            "Entity type user cannot appear more than once in the filter.",
        ),
        ([("group", ANY, None)], ErrorCode.UNSUPPORTED_VERSION, "Unsupported entity type group"),
        (
            [("user", EXACT, None)],
            ErrorCode.INVALID_REQUEST,
            "Request specified MATCH_TYPE_EXACT, but set match string to null.",
        ),
        (
            [("user", DEFAULT, "a")],
            ErrorCode.INVALID_REQUEST,
            "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
        ),
        ([("user", 9, None)], ErrorCode.INVALID_REQUEST, "Unknown match type 9"),
        (
            [("ip", ANY, None), ("user", ANY, None)],
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be "
            "used with user or clientId filter component.",
        ),
    ],
)
async def test_filters_that_are_refused(bench, components, error, message):
    assert await describe(bench, *components) == (error, message)


@pytest.mark.parametrize(
    ("entity", "values", "message"),
    [
        ({}, {"producer_byte_rate": 1.0}, "Invalid empty client quota entity"),
        ({"group": "g"}, {"x": 1.0}, "Unhandled client quota entity type: group"),
        ({"user": ""}, {"producer_byte_rate": 1.0}, "Empty user not supported"),
        (ALICE, {"producer_bytes": 1.0}, "Invalid configuration key producer_bytes"),
        (
            ALICE,
            {"connection_creation_rate": 1.0},
            "Invalid configuration key connection_creation_rate",
        ),
        (ALICE, {"producer_byte_rate": -1.0}, "Quota producer_byte_rate must be greater than 0"),
        (ALICE, {"producer_byte_rate": 1.5}, "producer_byte_rate cannot be a fractional value."),
        (
            ALICE,
            {"consumer_byte_rate": 1e30},
            "Proposed value for consumer_byte_rate is too large for a LONG.",
        ),
        (
            {"ip": "10.0.0.1"},
            {"connection_creation_rate": 2.0**31},
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
        (
            {"ip": "no such host"},
            {"connection_creation_rate": 1.0},
            "no such host is not a valid IP or resolvable host.",
        ),
    ],
)
async def test_alterations_that_are_refused(bench, entity, values, message):
    assert await alter(bench, (entity, values)) == [(ErrorCode.INVALID_REQUEST, message)]
    assert await describe(bench) == []


async def test_an_entity_named_twice_is_altered_once(bench):
    shown = "Ignoring duplicate entity ClientQuotaEntity(entries={client-id=null, user=alice})"
    both = {"user": "alice", "client-id": None}
    first, second = {"producer_byte_rate": 1.0}, {"producer_byte_rate": 2.0}
    assert await alter(bench, (both, first), (both, second)) == [(ErrorCode.INVALID_REQUEST, shown)]
    assert [values for _, values in await describe(bench)] == [first]


async def test_validation_alone_changes_nothing(bench):
    rate = {"producer_byte_rate": 1.0}
    assert await alter(bench, (ALICE, rate), validate_only=True) == [(ErrorCode.NONE, None)]
    assert await describe(bench) == []
    assert await stored(bench, "users/alice") is None


async def test_without_the_right_nothing_is_told_or_altered(bench):
    bench.authorize_by(lambda request, operation, kind, name: kind != "CLUSTER")
    assert (await describe(bench))[0] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    ((error, _),) = await alter(bench, (ALICE, {"producer_byte_rate": 1.0}))
    assert error == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_scram_credentials_of_a_user_stay(bench):
    manager = bench.broker.config_manager
    await manager.alter("users", "alice", lambda present: {"SCRAM-SHA-256": "secret"})
    assert await describe(bench) == []
    await alter(bench, (ALICE, {"producer_byte_rate": 1.0}))
    await alter(bench, (ALICE, {"producer_byte_rate": None}))
    assert await stored(bench, "users/alice") == {"SCRAM-SHA-256": "secret"}
