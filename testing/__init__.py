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
    from .control.client import ControlError, ControlTimeout
    from .fixtures.shared_broker import SharedBroker, SharedBrokerError
    from .process.broker_process import BrokerStartError
    from .process.schema_registry import SchemaRegistryProcess, SchemaRegistryStartError
    from .recorder.capture_file import CaptureError
    from .recorder.replay import ReplayError
    from .recorder.running_recorder import Recorder
    from .running_broker import Broker
    from .waiting import NotReached

__all__ = [
    "Broker",
    "BrokerStartError",
    "CaptureError",
    "Cluster",
    "ControlError",
    "ControlTimeout",
    "KafkaContainer",
    "NotReached",
    "Recorder",
    "ReplayError",
    "SchemaRegistryProcess",
    "SchemaRegistryStartError",
    "SharedBroker",
    "SharedBrokerError",
]

_MODULES = {
    "Broker": "running_broker",
    "BrokerStartError": "process.broker_process",
    "CaptureError": "recorder.capture_file",
    "Cluster": "cluster",
    "ControlError": "control.client",
    "ControlTimeout": "control.client",
    "KafkaContainer": "container",
    "NotReached": "waiting",
    "Recorder": "recorder.running_recorder",
    "ReplayError": "recorder.replay",
    "SchemaRegistryProcess": "process.schema_registry",
    "SchemaRegistryStartError": "process.schema_registry",
    "SharedBroker": "fixtures.shared_broker",
    "SharedBrokerError": "fixtures.shared_broker",
}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{module}", __name__), name)
