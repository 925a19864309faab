"""What cannot be imported now, for want of descriptors for example, is tried again.

The request gets an error or its connection is closed; the broker goes on, and so do others.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from odradek.broker.handlers import registry
from odradek.broker.request import dispatch
from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from conftest import Bench, Client

TOO_MANY = OSError(24, "Too many open files")


class Scarce:
    """Imports of one function that fail while there are no descriptors."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error
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
    assert scarce.tried == 2 * 1 + 2  # its coordinator, and then its handler
    await client.call(messages.ListGroupsRequest(), 4)
    assert scarce.tried == 2 * 1 + 2


class Waiting:
    """Clients whose first request waits for its import, as a transport's connections do.

    Attributes:
        threads: how many imports were begun in one.
        may_end: an import ends when this is set.
        error: raised in place of starting a thread.
    """

    def __init__(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clients = [bench.another_client(str(number)) for number in range(3)]
        self.threads = 0
        self.may_end = trio.Event()
        self.error: Exception | None = None
        bench.broker.dispatcher.imports_beside = True
        monkeypatch.setattr("odradek.runtime.waiting.run_in_thread", self._run)

    async def _run(self, work: Callable[[], Any]) -> Any:
        self.threads += 1
        if self.error is not None:
            raise self.error
        await self.may_end.wait()
        return await trio.to_thread.run_sync(work)

    async def answer(self, client: Client, message: Any, version: int) -> Any:
        """What a client is answered when its connection goes on."""
        await client.woken()
        client.connection.process_backlog()
        return await client.receive(type(message).api_key, version)


async def test_who_needs_an_import_waits_and_nobody_else(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.client.call(messages.DescribeClusterRequest(), 0)
    waiting = Waiting(bench, monkeypatch)
    first, second, other = waiting.clients
    request = messages.ListGroupsRequest()
    for client in (first, second):
        client.send(request, 4)
    await trio.testing.wait_all_tasks_blocked()
    assert waiting.threads == 1
    assert (await other.call(messages.DescribeClusterRequest(), 0)).error_code == ErrorCode.NONE
    assert first.connection.output == second.connection.output == []
    async with trio.open_nursery() as nursery:
        for client in (first, second):
            nursery.start_soon(waiting.answer, client, request, 4)
        await trio.testing.wait_all_tasks_blocked()
        waiting.may_end.set()
    assert (await first.call(request, 4)).error_code == ErrorCode.NONE
    assert waiting.threads == 1


async def test_without_a_thread_it_is_imported_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = Waiting(bench, monkeypatch)
    waiting.error = RuntimeError("can't start new thread")
    client, request = waiting.clients[0], messages.ListGroupsRequest()
    client.send(request, 4)
    assert (await waiting.answer(client, request, 4)).error_code == ErrorCode.NONE


async def test_what_cannot_be_imported_beside_the_others_is_tried_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = Waiting(bench, monkeypatch)
    waiting.may_end.set()
    client, request = waiting.clients[0], messages.ListGroupsRequest()
    for error, code in ((TOO_MANY, ErrorCode.UNKNOWN_SERVER_ERROR), (None, ErrorCode.NONE)):
        monkeypatch.setattr(registry, "import_module", Scarce(error))
        client.send(request, 4)
        assert (await waiting.answer(client, request, 4)).error_code == code


async def test_a_codec_that_cannot_be_imported_beside_the_others_costs_those_that_wait(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = Waiting(bench, monkeypatch)
    client, later, _ = waiting.clients

    def fail(*arguments: object) -> Any:
        raise TOO_MANY

    with monkeypatch.context() as patched:
        patched.setattr(dispatch, "Route", fail)
        client.send(messages.ListGroupsRequest(), 4)
        waiting.may_end.set()
        while not client.connection.is_closing:
            await client.woken()
    later.send(messages.ListGroupsRequest(), 4)
    answer = await waiting.answer(later, messages.ListGroupsRequest(), 4)
    assert answer.error_code == ErrorCode.NONE


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
