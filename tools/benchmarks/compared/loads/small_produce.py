"""Produce requests of one record, by a loader that is strict about what is in flight."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator, Sequence
from typing import Any

from .....bench.loads.wire import Wire, wire_to
from .....common.acl import Operation, Permission, ResourceType
from .....common.errors import ErrorCode
from .....protocol import messages
from ..peers import Failed, Peer
from ..ports import brokers_known
from .load import ComparedLoad, Figures, Tools, fresh_topic, output_of

API_VERSIONS_REQUEST = bytes.fromhex("0000000a001200000000002affff")
BUSY_CONNECTIONS = 16
LOADER_CLIENT_ID = "load"
WIDE_BYTE_RATE = 1e12
"""Nobody reaches it, and each request is measured all the same."""
LOADER_SECONDS_MORE = 60.0


def small_produce(connections: int, depth: int, idle: int = 0) -> ComparedLoad:
    """One record of 100 bytes in each request, acks=1, so many in flight and no more."""

    def run(peer: Peer, tools: Tools) -> Figures:
        with fresh_topic(peer) as topic, idle_connections(peer, idle):
            return _loaded(peer, tools, topic, connections, depth)

    flight = f"{connections} connections" if connections > 1 else "1 connection"
    name = f"Produce, {flight}"
    name += f" x {depth} in flight" if depth > 1 else ""
    return ComparedLoad(name + (f", {idle} idle ones" if idle else ""), run)


def guarded_produce() -> ComparedLoad:
    """The same on 16 connections, to a topic that an ACL grants and under a quota that is wide."""

    def run(peer: Peer, tools: Tools) -> Figures:
        with (
            fresh_topic(peer) as topic,
            wire_to(f"127.0.0.1:{peer.ports[0]}") as wire,
            _grant_and_quota(wire, topic),
        ):
            return _loaded(peer, tools, topic, BUSY_CONNECTIONS, 1)

    return ComparedLoad(f"Produce, {BUSY_CONNECTIONS} connections, ACLs and a quota", run)


@contextlib.contextmanager
def _grant_and_quota(wire: Wire, topic: str) -> Iterator[None]:
    """Everybody may do all with a topic, and the loader has a quota. Raises Failed."""
    acls = messages.CreateAclsRequest
    grant = acls.AclCreation(
        resource_type=ResourceType.TOPIC,
        resource_name=topic,
        principal="User:*",
        host="*",
        operation=Operation.ALL,
        permission_type=Permission.ALLOW,
    )
    quota = messages.AlterClientQuotasRequest

    def alter_quota(*, remove: bool) -> None:
        operation = quota.OpData(key="producer_byte_rate", value=WIDE_BYTE_RATE, remove=remove)
        entity = quota.EntityData(entity_type="client-id", entity_name=LOADER_CLIENT_ID)
        _require(
            wire.ask(quota(entries=[quota.EntryData(entity=[entity], ops=[operation])])).entries
        )

    _require(wire.ask(acls(creations=[grant])).results)
    alter_quota(remove=False)
    try:
        yield
    finally:
        alter_quota(remove=True)


def _require(results: Sequence[Any]) -> None:
    """Raises Failed for an answer of an admin request that is an error."""
    for each in results:
        if each.error_code:
            raise Failed(f"refused with {ErrorCode(each.error_code).name}: {each.error_message}")


def idle_connections_cost(count: int) -> ComparedLoad:
    """Memory of connections that are silent, and what 16 busy ones lose by them."""

    def run(peer: Peer, tools: Tools) -> Figures:
        with fresh_topic(peer) as topic:
            alone = _loaded(peer, tools, topic, BUSY_CONNECTIONS, 1)["rate"]
            before = peer.resident_mb()
            with idle_connections(peer, count):
                if not brokers_known(peer.ports[0]):
                    raise Failed(f"{peer.name} does not answer beside {count} connections")
                memory = peer.resident_mb() - before
                beside = _loaded(peer, tools, topic, BUSY_CONNECTIONS, 1)["rate"]
        return {"kb_each": memory * 1000 / count, "busy_loss": 1 - beside / alone}

    return ComparedLoad(f"{count} idle connections", run)


def _loaded(peer: Peer, tools: Tools, topic: str, connections: int, depth: int) -> Figures:
    before = peer.cpu_seconds()
    output = output_of(
        [
            *(str(tools.loader), "-address", peer.address, "-topic", topic),
            *("-connections", str(connections), "-depth", str(depth)),
            *("-seconds", str(tools.seconds)),
        ],
        tools.seconds + LOADER_SECONDS_MORE,
    )
    cpu = peer.cpu_seconds() - before
    measured = json.loads(output)
    if measured["errors"]:
        raise Failed(f"{peer.name} answered {measured['errors']} requests with an error")
    return {
        "rate": measured["rate"],
        "cpu_us": cpu / measured["requests"] * 1e6,
        "p50_ms": measured["p50_ms"],
        "p99_ms": measured["p99_ms"],
    }


@contextlib.contextmanager
def idle_connections(peer: Peer, count: int) -> Iterator[None]:
    """Connections that ask nothing, after one request each. Raises OSError."""
    with contextlib.ExitStack() as stack:
        opened = []
        for _ in range(count):
            address = ("127.0.0.1", peer.ports[0])
            sock = stack.enter_context(socket.create_connection(address, timeout=10))
            sock.sendall(API_VERSIONS_REQUEST)
            opened.append(sock)
        for sock in opened:
            if not sock.recv(1 << 16):
                raise Failed(f"{peer.name} closed a connection of {count}")
        yield
