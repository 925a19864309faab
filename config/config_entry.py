"""One setting as DescribeConfigs answers it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .definition import ConfigSource, ConfigType, Definition


class ConfigSynonym(NamedTuple):
    """One place that a setting's value could come from, with the value there."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One setting in an answer. `value` is None for a secret."""

    name: str
    value: str | None
    read_only: bool
    source: ConfigSource
    sensitive: bool
    synonyms: tuple[ConfigSynonym, ...]
    type: ConfigType


def make_entry(
    definition: Definition,
    value: str | None,
    read_only: bool,
    synonyms: Sequence[ConfigSynonym],
) -> ConfigEntry:
    """The entry of a setting; its first synonym decides its source, and a secret stays one."""
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    if definition.sensitive:
        value = None
        synonyms = [synonym._replace(value=None) for synonym in synonyms]
    return ConfigEntry(
        definition.name,
        value,
        read_only,
        source,
        definition.sensitive,
        tuple(synonyms),
        definition.type,
    )


def unknown_entry(name: str, source: ConfigSource) -> ConfigEntry:
    """The entry of a name that no table has: it could be a secret, so its value is not shown."""
    synonyms = (ConfigSynonym(name, None, source),)
    return ConfigEntry(name, None, True, source, True, synonyms, ConfigType.UNKNOWN)
