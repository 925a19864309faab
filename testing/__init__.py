"""What users' own tests use: a broker in a process of its own, and pytest fixtures of it.

    from odradek.testing import Broker

It may use every package but the command line. Nothing is imported before it is used, since the
pytest plugin is part of every pytest run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cluster import Cluster
    from .container import KafkaContainer
    from .fixtures.shared_broker import SharedBroker
    from .recorder.running_recorder import Recorder
    from .running_broker import Broker

__all__ = ["Broker", "Cluster", "KafkaContainer", "Recorder", "SharedBroker"]

_MODULES = {
    "Broker": "running_broker",
    "Cluster": "cluster",
    "KafkaContainer": "container",
    "Recorder": "recorder.running_recorder",
    "SharedBroker": "fixtures.shared_broker",
}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{module}", __name__), name)
