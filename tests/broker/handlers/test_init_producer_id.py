"""Producer ids, while the metadata store gives out blocks of them and while it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from odradek.broker.handlers import init_producer_id
from odradek.common.errors import ErrorCode
from odradek.metadata_store.errors import StoreUnreachable
from odradek.protocol import messages

if TYPE_CHECKING:
    from conftest import Bench

REQUEST = messages.InitProducerIdRequest(
    transactional_id=None, transaction_timeout_ms=0, producer_id=-1, producer_epoch=-1
)


async def ask(bench: Bench) -> tuple[int, int]:
    """Error and producer id."""
    with trio.fail_after(60):
        answer = await bench.client.call(REQUEST, 4)
    return answer.error_code, answer.producer_id


async def test_every_producer_gets_an_id_of_its_own(bench: Bench) -> None:
    first = await ask(bench)
    second = await ask(bench)
    assert first[0] == second[0] == ErrorCode.NONE
    assert first[1] != second[1]


async def test_a_store_that_says_nothing_has_the_client_ask_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def get(path: str) -> None:
        await trio.sleep_forever()

    with monkeypatch.context() as patch:
        patch.setattr(bench.broker.metadata_store, "get", get)
        patch.setattr(init_producer_id, "BLOCK_SECONDS_MAX", 0.01)
        assert await ask(bench) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)
    assert (await ask(bench))[0] == ErrorCode.NONE


async def test_a_store_out_of_reach_has_the_client_ask_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def get(path: str) -> None:
        raise StoreUnreachable(path)

    with monkeypatch.context() as patch:
        patch.setattr(bench.broker.metadata_store, "get", get)
        assert await ask(bench) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)
    assert (await ask(bench))[0] == ErrorCode.NONE
