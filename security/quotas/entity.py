"""Whom a quota is for: a user, a client id, both together, or an address; by name or by default.

A quota's entity is one node of the metadata store, as in Kafka 3.9 (ZkAdminManager): under
`/config/users`, `/config/users/<user>/clients`, `/config/clients` and `/config/ips`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
ENTITY_TYPES: Final = frozenset({USER, CLIENT_ID, IP})

DEFAULT_NODE: Final = "<default>"
"""The node of a default entity; no name is encoded so (Kafka's ZooKeeperInternals)."""

_FOLDERS: Final = {"users": USER, "clients": CLIENT_ID, "ips": IP}
"""Below `/config`: where entities' nodes are."""


@dataclass(frozen=True, slots=True)
class ClientQuotaEntity:
    """Kafka's ClientQuotaEntity.

    Attributes:
        entries: entity types and names, sorted by type; None is the default of a type.
    """

    entries: tuple[tuple[str, str | None], ...]

    @classmethod
    def of(cls, names: Mapping[str, str | None]) -> ClientQuotaEntity:
        """The entity with these names by type."""
        return cls(tuple(sorted(names.items())))

    @classmethod
    def from_path(cls, path: str) -> ClientQuotaEntity | None:
        """The entity whose node is at a path below `/config`; None if it is none of quotas."""
        parts = path.split("/")
        folders, nodes = parts[::2], parts[1::2]
        if folders not in (["users"], ["users", "clients"], ["clients"], ["ips"]):
            return None
        if len(nodes) != len(folders) or not all(nodes):
            return None
        names = (None if node == DEFAULT_NODE else unquote(node) for node in nodes)
        return cls.of(dict(zip(map(_FOLDERS.__getitem__, folders), names, strict=True)))

    @property
    def names(self) -> dict[str, str | None]:
        """Names by type."""
        return dict(self.entries)

    @property
    def path(self) -> str:
        """Where below `/config` its quotas are."""
        names = self.names
        return "/".join(
            f"{folder}/{_encode(names[entity_type])}"
            for folder, entity_type in _FOLDERS.items()
            if entity_type in names
        )

    def __str__(self) -> str:
        """As Kafka's error messages have it."""
        shown = ", ".join(
            f"{entity_type}={'null' if name is None else name}"
            for entity_type, name in self.entries
        )
        return f"ClientQuotaEntity(entries={{{shown}}})"


def _encode(name: str | None) -> str:
    """A name as that of a node (Kafka's Sanitizer)."""
    if name is None:
        return DEFAULT_NODE
    encoded = quote(name, safe="").replace("~", "%7E")
    return encoded if encoded.strip(".") else encoded.replace(".", "%2E")
