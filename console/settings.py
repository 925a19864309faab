"""What a console was started with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .records.schema_values import TopicSchema


class ConsoleSettings(NamedTuple):
    """Where it serves, whom, and what they may do.

    Attributes:
        host: what it listens on; `localhost` is IPv4 and IPv6.
        port: 0 takes a free one.
        may_write: whether anything can be changed; otherwise every request that would is refused.
        token: what visitors must know; None: nothing, which is for the loopback interface only.
        names: further names that it is reached by, as a browser's Host header has them.
        control: the URL of a test broker's control channel; None: it is no test broker.
        registry: the URL of a schema registry, which knows what keys and values are.
        schemas: of topics whose values have no header.
        key_schemas: of topics whose keys have no header.
        metrics: the URLs of brokers' metrics, as Prometheus reads them.
        cluster: what the cluster was called on the command line, to name it in errors.
    """

    host: str
    port: int
    may_write: bool = False
    token: str | None = None
    names: tuple[str, ...] = ()
    control: str | None = None
    registry: str | None = None
    metrics: tuple[str, ...] = ()
    cluster: str = ""
    schemas: tuple[TopicSchema, ...] = ()
    key_schemas: tuple[TopicSchema, ...] = ()
