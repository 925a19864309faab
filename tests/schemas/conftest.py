"""What Confluent's own serializers need: a registry in memory, and classes that protoc made."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from support.schema_registry_server import SchemaRegistryServer, schema_registry

ORDERS = Path(__file__).with_name("orders.proto")


@pytest.fixture
def mock_client() -> Any:
    """A client of `mock://`, which holds the schemas itself."""
    return SchemaRegistryClient.new_client({"url": "mock://tests"})


@pytest.fixture
def server() -> Iterator[SchemaRegistryServer]:
    """A registry over HTTP."""
    with schema_registry() as running:
        yield running


@pytest.fixture(scope="session")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The module that protoc makes of `orders.proto`: code that is not ours reads and writes."""
    folder = tmp_path_factory.mktemp("protoc")
    subprocess.run(
        [
            *(sys.executable, "-m", "grpc_tools.protoc", f"-I{ORDERS.parent}"),
            *(f"--python_out={folder}", ORDERS.name),
        ],
        check=True,
        timeout=60,
    )
    spec = importlib.util.spec_from_file_location("orders_pb2", folder / "orders_pb2.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
