"""Whether a broker is well, and whether it serves: what `/health` and `/ready` answer.

That there is an answer says that the process lives and its loop runs. What is wrong is named in a
sentence each.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from ..broker_state import BrokerState
from .source import MetricsContext

OK, UNAVAILABLE = 200, 503


class Verdict(NamedTuple):
    """An answer to a probe.

    Attributes:
        status: of HTTP; 503 where a reason speaks against the broker.
        body: an object of JSON, with a line feed behind it.
    """

    status: int
    body: bytes


def health(source: MetricsContext | None) -> Verdict:
    """Whether the process does what it can: its log directories are online.

    A full disk is named, and none of 503's reasons: a restart, which is what an orchestrator makes
    of them, frees nothing.

    Args:
        source: the parts of the broker; None while it loads its logs, which may take long.
    """
    if source is None:
        return _verdict(None, [], [])
    reasons, warnings = [], []
    directories = []
    refused_writes = source.context.replica_manager.refused_writes
    for directory in source.context.log_manager.directories:
        is_full = refused_writes.is_full(directory.path)
        directories.append(
            {"path": directory.path, "online": directory.is_online, "disk_full": is_full}
        )
        if not directory.is_online:
            reasons.append(f"log directory {directory.path} is offline: {directory.failure}")
        elif is_full:
            warnings.append(f"log directory {directory.path} has refused writes: its disk is full")
    return _verdict(source, reasons, warnings, log_directories=directories)


def readiness(source: MetricsContext | None) -> Verdict:
    """Whether clients are served: with complete metadata, and not while the broker stops.

    Args:
        source: the parts of the broker; None while it loads its logs.
    """
    if source is None:
        return _verdict(None, ["the metadata store is being opened and the logs loaded"], [])
    reasons = []
    state = source.state()
    if state is not BrokerState.RUNNING:
        reasons.append(f"the broker is {_words(state)}")
    cache = source.context.metadata_cache
    if not cache.is_complete:
        reasons.append("no controller has sent the metadata of the cluster yet")
    elif source.context.broker_id not in cache.snapshot.alive_brokers:
        reasons.append("the controller does not count this broker among those that are alive")
    return _verdict(source, reasons, [])


def _words(state: BrokerState) -> str:
    return state.name.lower().replace("_", " ")


def _verdict(
    source: MetricsContext | None, reasons: list[str], warnings: list[str], **more: object
) -> Verdict:
    state = BrokerState.STARTING if source is None else source.state()
    found: dict[str, object] = {
        "status": "failing" if reasons else "warning" if warnings else "ok",
        "state": _words(state),
        "reasons": reasons + warnings,
    }
    if source is not None:
        context = source.context
        found |= {"broker_id": context.broker_id, "cluster_id": context.cluster_id}
    body = json.dumps(found | more).encode("ascii") + b"\n"
    return Verdict(UNAVAILABLE if reasons else OK, body)
