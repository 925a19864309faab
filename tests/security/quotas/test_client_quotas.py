"""Which quota applies: the eight levels of Kafka's documentation, against a model of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from odradek.security.quotas.client_quotas import ClientQuotas
from odradek.security.quotas.entity import ClientQuotaEntity

DEFAULT = None
NAMES = ("a", "b")
ABSENT = "absent"

LEVELS = (
    ("own", "own"),
    ("own", DEFAULT),
    ("own", ABSENT),
    (DEFAULT, "own"),
    (DEFAULT, DEFAULT),
    (DEFAULT, ABSENT),
    (ABSENT, "own"),
    (ABSENT, DEFAULT),
)
"""Kafka's documentation, "Quotas": the order in which quotas are looked for, as user and client."""

entities = st.tuples(
    st.sampled_from([*NAMES, DEFAULT, ABSENT]), st.sampled_from([*NAMES, DEFAULT, ABSENT])
).filter(lambda pair: pair != (ABSENT, ABSENT))


def expected(bounds, user, client):
    for of_user, of_client in LEVELS:
        key = (user if of_user == "own" else of_user, client if of_client == "own" else of_client)
        if key in bounds:
            return key, bounds[key]
    return None


def entity_of(key):
    names = dict(zip(("user", "client-id"), key, strict=True))
    return ClientQuotaEntity.of({kind: name for kind, name in names.items() if name != ABSENT})


@given(
    steps=st.lists(st.tuples(entities, st.none() | st.integers(1, 99)), max_size=12),
    user=st.sampled_from([*NAMES, "other"]),
    client=st.sampled_from([*NAMES, "other"]),
)
def test_the_most_specific_quota_applies(steps, user, client):
    quotas, bounds = ClientQuotas(), {}
    for key, bound in steps:
        quotas.set(entity_of(key), bound)
        bounds[key] = bound
        if bound is None:
            del bounds[key]
    assert len(quotas) == len(bounds)
    found, model = quotas.find(user, client), expected(bounds, user, client)
    if model is None:
        assert found is None
        return
    (of_user, of_client), bound = model
    shared_by = ("" if of_user == ABSENT else user, "" if of_client == ABSENT else client)
    assert found == (shared_by, bound)


@given(key=entities)
def test_an_entity_is_found_by_its_path(key):
    assert ClientQuotaEntity.from_path(entity_of(key).path) == entity_of(key)


def test_client_without_an_id_has_its_users_quota():
    quotas = ClientQuotas()
    quotas.set(ClientQuotaEntity.of({"user": "a", "client-id": None}), 5)
    assert quotas.find("a", "x") == (("a", "x"), 5)
    assert quotas.find("a", "") is None
    quotas.set(ClientQuotaEntity.of({"user": "a"}), 7)
    assert quotas.find("a", "") == (("a", ""), 7)


def test_paths_that_are_no_entities():
    for path in ("topics/t", "users", "users/", "users/a/clients", "users/a/clients/c/x/y", ""):
        assert ClientQuotaEntity.from_path(path) is None
