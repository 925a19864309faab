"""The commands of `odradek` by name, each imported when it is needed, in the order of the help."""

from __future__ import annotations

from importlib import import_module
from typing import Any

COMMANDS = {
    "topics": "topics.command:app",
    "produce": "records.produce:produce",
    "consume": "records.consume:consume",
    "groups": "groups.command:app",
    "configs": "configs.command:app",
    "partitions": "partitions.command:app",
    "transactions": "transactions.command:app",
    "users": "users.command:app",
    "acls": "acls.command:app",
    "quotas": "quotas.command:app",
    "tokens": "tokens.command:app",
    "cluster": "cluster.command:cluster",
    "console": "console.command:console",
    "record": "recorder.record:record",
    "replay": "recorder.replay:replay",
    "log": "log.command:app",
    "spark": "spark.command:app",
    "bench": "bench.command:bench",
    "demo": "spark.demo:demo",
    "completion": "completion.scripts:completion",
}
"""Where each is: a function, or a group of several. `serve` is not among them: it is
dispatched before anything of this is imported."""


def load_command(name: str) -> Any:
    """A command of the table: its function, or its group."""
    module, _, attribute = COMMANDS[name].partition(":")
    return getattr(import_module(f".{module}", __package__), attribute)
