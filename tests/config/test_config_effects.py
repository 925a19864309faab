"""What the documentation says has an effect is read somewhere, and nothing else is."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.config.definition import ConfigError, ConfigType
from odradek.config.dynamic.dynamic_rules import DYNAMIC_ONLY
from odradek.config.effects import (
    NOT_YET,
    NOT_YET_PREFIXES,
    REFUSED,
    REFUSED_PREFIXES,
    is_ignored,
    is_not_yet,
    why_refused,
)
from odradek.config.resolve import COMPANIONS
from odradek.config.tables.broker_table import BROKER_DEFINITIONS
from odradek.config.tables.group_table import GROUP_BOUNDS, GROUP_SYNONYMS
from odradek.config.tables.topic_table import BROKER_SYNONYMS, TOPIC_DEFINITIONS
from odradek.config.values import format_value
from odradek.storage.log.log_config import LogConfig

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "broker",
    "cli",
    "client",
    "config",
    "controller",
    "coordinator",
    "metadata",
    "metadata_store",
    "replication",
    "runtime",
    "security",
    "storage",
)
ALSO_READ = {
    "delegation.token.master.key": "delegation.token.secret.key",
    "internal.segment.bytes": "segment.bytes",
    "node.id": "broker.id",
    **{
        bound: "group." + name
        for name, bounds in GROUP_BOUNDS.items()
        for bound in bounds
        if bound is not None and name.startswith("consumer.")
    },
    **{
        ours: name
        for name, synonym in GROUP_SYNONYMS.items()
        for ours in (synonym, *GROUP_BOUNDS.get(name, ()))
        if ours is not None and name.startswith(("share.", "streams."))
    },
}
"""Settings that count where another one does, such as the bounds of what a group may be given."""


def sources():
    """The modules that could read a setting: all but those that only list or join them."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            lists_settings = package == "config" and path.name != "broker_config.py"
            # `client/properties.py` names what a client's own settings file may hold.
            if not lists_settings and path.name not in ("log_config.py", "properties.py"):
                yield path.read_text(encoding="utf-8")


@cache
def read_somewhere():
    """The texts and the attribute names in those modules."""
    texts, attributes = set(), set()
    for source in sources():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
            elif isinstance(node, ast.Attribute):
                attributes.add(node.attr)
    return texts, attributes


def is_read_as(name):
    """Whether the code asks for the setting by its name, or as a field of `LogConfig`."""
    texts, attributes = read_somewhere()
    field = name.replace(".", "_")
    return name in texts or (field in LogConfig._fields and field in attributes)


def is_read(name):
    """Whether the setting, or one that takes its value from it, is read by the code."""
    name = ALSO_READ.get(name, name)
    names = {winner for winner, family in COMPANIONS.items() if name in family} | {name}
    names |= {topic for topic, ours in BROKER_SYNONYMS.items() if ours in names}
    return any(is_read_as(one) for one in names)


def unread():
    settings = {*BROKER_DEFINITIONS, *TOPIC_DEFINITIONS, *DYNAMIC_ONLY}
    return {name for name in settings if not is_read(name)}


def test_setting_without_an_effect_says_so():
    """If this fails: read the setting, or name it in `effects`; then `make docs`."""
    silent = {name for name in unread() if not is_ignored(name) and not is_not_yet(name)}
    assert {name for name in silent if why_refused(name) is None} == set()


def test_setting_that_is_read_is_not_called_without_effect():
    """If this fails: the setting has an effect now; take it out of `effects`; then `make docs`."""
    settings = {*BROKER_DEFINITIONS, *TOPIC_DEFINITIONS, *DYNAMIC_ONLY}
    wrong = {name for name in settings - unread() if is_ignored(name) or is_not_yet(name)}
    assert wrong == set()


def test_setting_is_refused_or_has_an_effect_and_not_both():
    read = {name for name in BROKER_DEFINITIONS if is_read(name)}
    assert {name for name in read if why_refused(name) is not None} == set()
    assert not {name for name in BROKER_DEFINITIONS if why_refused(name) and is_ignored(name)}
    assert not {name for name in BROKER_DEFINITIONS if why_refused(name) and is_not_yet(name)}
    assert BROKER_DEFINITIONS.keys() >= REFUSED.keys()
    for prefix in REFUSED_PREFIXES:
        assert any(name.startswith(prefix) for name in BROKER_DEFINITIONS)


WITHOUT_HARM = {
    "sasl.mechanism.controller.protocol",  # of KRaft's controllers, which do not listen here
    "zookeeper.clientCnxnSocket",  # Kafka demands one where there is TLS; kazoo has its own
    "zookeeper.max.in.flight.requests",
    "zookeeper.ssl.truststore.password",  # PEM has none, and another store is refused
}
"""Settings of security that are accepted without an effect, and leave nothing open."""


def test_no_other_setting_of_security_is_accepted_without_an_effect():
    """If this fails: enforce the setting, refuse it in `effects`, or say here why it may be."""
    words = (
        "sasl.",
        "ssl.",
        "security.",
        "quota",
        "principal",
        "policy",
        "zookeeper.",
        "authorizer",
    )
    words += ("delegation.", "password", "config.providers", "max.connection", "super.users")
    of_security = {name for name in BROKER_DEFINITIONS if any(word in name for word in words)}
    assert len(of_security) > 100
    accepted = {name for name in of_security if is_ignored(name) or is_not_yet(name)}
    tiered = {name for name in accepted if name.startswith("remote.")}
    kerberos = {name for name in accepted if name.startswith("sasl.kerberos.")}
    assert accepted - tiered - kerberos == WITHOUT_HARM


@pytest.mark.parametrize("name", [name for name in BROKER_DEFINITIONS if why_refused(name)])
def test_setting_that_nobody_would_enforce_is_refused_unless_it_is_the_default(name):
    definition = BROKER_DEFINITIONS[name]
    numbers = {ConfigType.BOOLEAN: "true", ConfigType.INT: "7", ConfigType.LONG: "7"}
    other = numbers.get(definition.type, "other")
    if name == "sasl.oauthbearer.assertion.algorithm":
        other = "ES256"
    for key in (name, f"listener.name.out.{name}"):
        with pytest.raises(ConfigError, match=f"{key} would not be enforced") as raised:
            BrokerConfig.from_sources({key: other})
        assert why_refused(name) in str(raised.value)
    default = format_value(definition.type, definition.default) or ""
    if default or definition.type in (ConfigType.STRING, ConfigType.CLASS, ConfigType.LIST):
        BrokerConfig.from_sources({name: default})


def test_every_entry_of_what_is_not_yet_is_needed():
    settings = {*BROKER_DEFINITIONS, *TOPIC_DEFINITIONS, *DYNAMIC_ONLY}
    assert settings >= NOT_YET
    for prefix in NOT_YET_PREFIXES:
        assert any(name.startswith(prefix) for name in settings), prefix
        assert not any(name.startswith(prefix) for name in NOT_YET), prefix


def test_scan_finds_what_is_plainly_read():
    assert is_read("log.dirs")
    assert is_read("log.retention.minutes")
    assert is_read("log.segment.bytes")
    assert is_read("segment.bytes")
    assert not is_read("zookeeper.ssl.crl.enable")
