"""Which metadata store a broker uses: ZooKeeper if `zookeeper.connect` names one, else a file."""

from __future__ import annotations

from pathlib import Path

from ..config.definition import ConfigError, ConfigValues
from ..runtime.clock import Clock
from .embedded.embedded_store import EmbeddedStore
from .store import MetadataStore

METADATA_FILE = "odradek-metadata.sqlite"


def make_store(config: ConfigValues, folder: Path, *, clock: Clock) -> MetadataStore:
    """A store that is not open yet.

    Args:
        folder: where the file of the embedded store lies; brokers of one machine that share it
            are one cluster.

    Raises:
        ConfigError: `zookeeper.connect` is set, and kazoo is not installed or the settings do not
            go together.
    """
    connect = config["zookeeper.connect"]
    if not connect:
        return EmbeddedStore(folder / METADATA_FILE, clock=clock)
    try:
        from .zookeeper.zookeeper_store import ZooKeeperStore
    except ImportError as error:
        raise ConfigError(
            "zookeeper.connect needs the package kazoo: pip install 'odradek[zookeeper]'."
        ) from error
    tls = None
    if config["zookeeper.ssl.client.enable"]:
        from .zookeeper.zookeeper_tls import client_context

        tls = client_context(config)
    session_timeout_ms = config["zookeeper.session.timeout.ms"]
    return ZooKeeperStore(
        connect,
        session_timeout_ms=session_timeout_ms,
        connection_timeout_ms=config["zookeeper.connection.timeout.ms"] or session_timeout_ms,
        digest=config["zookeeper.digest"],
        tls=tls,
        set_acl=_sets_acl(config),
    )


def _sets_acl(config: ConfigValues) -> bool:
    if not config["zookeeper.set.acl"]:
        return False
    shows_certificate = (
        config["zookeeper.ssl.client.enable"] and config["zookeeper.ssl.keystore.location"]
    )
    if not (config["zookeeper.digest"] or shows_certificate):
        raise ConfigError(
            "zookeeper.set.acl=true needs somebody who may change the nodes: set zookeeper.digest, "
            "or zookeeper.ssl.client.enable and zookeeper.ssl.keystore.location."
        )
    return True
