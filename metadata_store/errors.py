"""Why a metadata store did not do what it was called for; ZooKeeper's own kinds."""

from __future__ import annotations


class MetadataStoreError(Exception):
    """A verb that did nothing, all of it. `path` names the node it stumbled over."""

    def __init__(self, path: str = "", reason: str = "") -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        text = f"{type(self).__name__}: {self.path}" if self.path else type(self).__name__
        return f"{text} ({self.reason})" if self.reason else text


class NoNode(MetadataStoreError):
    """There is no such node, or no parent for the one to create."""


class NodeExists(MetadataStoreError):
    """The node to create is there already."""


class BadVersion(MetadataStoreError):
    """The node's version is not the expected one: someone else was faster."""


class NotEmpty(MetadataStoreError):
    """The node to delete has children."""


class NoChildrenForEphemerals(MetadataStoreError):
    """An ephemeral node may not have children."""


class NotAllowed(MetadataStoreError):
    """The store does not let this session do that: see its credentials and the node's ACL."""


class SessionExpired(MetadataStoreError):
    """The session is over and its ephemeral nodes are gone; only a new session helps."""


class StoreUnreachable(MetadataStoreError):
    """The store could not be reached. What a write did is unknown; the session may live on."""
