"""`meta.properties`: which cluster and broker a log directory belongs to (KIP-631, KIP-858)."""

from __future__ import annotations

import os.path

from ...common.named_tuple import NamedTuple
from ..errors import LogDirectoryError
from ..file_names import META_PROPERTIES_FILE
from ..io.files import Files

META_PROPERTIES_VERSION = 1
"""Version 0, of Kafka in ZooKeeper mode, says `broker.id` for `node.id`."""


class MetaProperties(NamedTuple):
    """What the file says."""

    node_id: int | None
    cluster_id: str | None
    directory_id: str | None


def read_meta_properties(files: Files, directory: str) -> MetaProperties | None:
    """The properties of a log directory, or None if it is new.

    Raises:
        LogDirectoryError: the file is not what it should be.
    """
    path = os.path.join(directory, META_PROPERTIES_FILE)
    if not files.exists(path):
        return None
    fields = {}
    for line in files.read_bytes(path).decode("utf-8", "replace").splitlines():
        if not line.lstrip().startswith(("#", "!")) and "=" in line:
            name, _, value = line.partition("=")
            fields[name.strip()] = value.strip()
    if fields.get("version") not in ("0", "1"):
        raise LogDirectoryError(f"{path} has version {fields.get('version')!r}, not 0 or 1")
    node_id = fields.get("node.id", fields.get("broker.id"))
    try:
        number = None if node_id is None else int(node_id)
    except ValueError:
        raise LogDirectoryError(f"{path} has the node id {node_id!r}, not a number") from None
    return MetaProperties(number, fields.get("cluster.id"), fields.get("directory.id"))


def write_meta_properties(
    files: Files, directory: str, *, node_id: int, cluster_id: str, directory_id: str
) -> None:
    """Mark a log directory as one of this broker's."""
    text = (
        f"version={META_PROPERTIES_VERSION}\nnode.id={node_id}\n"
        f"cluster.id={cluster_id}\ndirectory.id={directory_id}\n"
    )
    files.write_atomically(
        os.path.join(directory, META_PROPERTIES_FILE), text.encode("ascii"), sync=True
    )
