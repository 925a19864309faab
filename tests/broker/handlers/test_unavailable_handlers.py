"""What cannot be imported now, for want of descriptors for example, is tried again.

The request gets an error or its connection is closed; the broker goes on, and so do others.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import pytest

from odradek.broker.handlers import registry
from odradek.broker.request import dispatch
from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from conftest import Bench

TOO_MANY = OSError(24, "Too many open files")


class Scarce:
    """Imports of one function that fail while there are no descriptors."""

    def __init__(self, error: Exception) -> None:
        self.error: Exception | None = error
        self.tried = 0

    def __call__(self, name: str, package: str | None = None) -> Any:
        self.tried += 1
        if self.error is not None:
            raise self.error
        return importlib.import_module(name, package)


@pytest.mark.parametrize("error", [TOO_MANY, ImportError("no module")])
async def test_a_handler_that_cannot_be_imported_is_an_error_of_its_requests(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    client = bench.another_client("first")
    scarce = Scarce(error)
    monkeypatch.setattr(registry, "import_module", scarce)
    for _ in range(2):
        answer = await client.call(messages.ListGroupsRequest(), 4)
        assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    scarce.error = None
    answer = await client.call(messages.ListGroupsRequest(), 4)
    assert answer.error_code == ErrorCode.NONE
    assert scarce.tried == 3
    await client.call(messages.ListGroupsRequest(), 4)
    assert scarce.tried == 3


async def test_a_codec_that_cannot_be_imported_costs_one_connection(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client, other = bench.another_client("first"), bench.another_client("second")

    def fail(*arguments: object) -> Any:
        raise TOO_MANY

    with monkeypatch.context() as patched:
        patched.setattr(dispatch, "Route", fail)
        client.send(messages.DescribeClusterRequest(), 0)
        assert client.connection.is_closing
        assert "Too many open files" in caplog.text
    answer = await other.call(messages.DescribeClusterRequest(), 0)
    assert answer.error_code == ErrorCode.NONE


async def test_a_request_is_answered_that_cannot_be_remembered(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(api_key: ApiKey) -> Any:
        raise TOO_MANY

    client = bench.another_client("first")
    request = messages.ListOffsetsRequest(replica_id=-1, topics=[])
    with monkeypatch.context() as patched:
        patched.setattr(dispatch, "_memo_type", fail)
        assert (await client.call(request, 7)).topics == []
        assert not client.connection.memos
    assert (await client.call(request, 7)).topics == []
    assert client.connection.memos


async def test_a_fault_of_ours_closes_its_connection_and_no_other(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, other = bench.another_client("first"), bench.another_client("second")

    def fail(*arguments: object) -> Any:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(dispatch, "read_request_header", fail)
        client.send(messages.ApiVersionsRequest(), 0)
    assert client.connection.is_closing
    assert (await other.call(messages.ApiVersionsRequest(), 0)).error_code == ErrorCode.NONE


def test_a_module_whose_import_failed_is_imported_again(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it had imported itself stays; nothing is left of the module that failed."""
    (tmp_path / "half_package").mkdir()
    (tmp_path / "half_package" / "__init__.py").write_text("from . import part\nimport no_such\n")
    (tmp_path / "half_package" / "part.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ImportError):
        importlib.import_module("half_package")
    assert "half_package" not in sys.modules
    (tmp_path / "no_such.py").write_text("")
    importlib.invalidate_caches()
    assert importlib.import_module("half_package").part.VALUE == 1
