"""What the documentation says has an effect is read somewhere, and nothing else is."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from odradek.config.dynamic.dynamic_rules import DYNAMIC_ONLY
from odradek.config.effects import NOT_YET, NOT_YET_PREFIXES, is_ignored, is_not_yet
from odradek.config.resolve import COMPANIONS
from odradek.config.tables.broker_table import BROKER_DEFINITIONS
from odradek.config.tables.group_table import GROUP_BOUNDS
from odradek.config.tables.topic_table import BROKER_SYNONYMS, TOPIC_DEFINITIONS
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
    assert silent == set()


def test_setting_that_is_read_is_not_called_without_effect():
    """If this fails: the setting has an effect now; take it out of `effects`; then `make docs`."""
    settings = {*BROKER_DEFINITIONS, *TOPIC_DEFINITIONS, *DYNAMIC_ONLY}
    wrong = {name for name in settings - unread() if is_ignored(name) or is_not_yet(name)}
    assert wrong == set()


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
