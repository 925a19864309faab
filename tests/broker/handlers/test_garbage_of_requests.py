"""What a request made is freed when it is answered, without the garbage collector.

A broker's collector looks at what requests leave in cycles of references only when there is much of
it (`runtime/collector.py`), and then all at once: refusals that were kept with the calls that they
came through, one for each element of a request, made it hold the loop for half a second.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator

import pytest
import trio
from support.selection import slow_unless

from odradek.broker.handlers.registry import REGISTRATIONS
from odradek.protocol import messages
from odradek.protocol.api_keys import ApiKey
from odradek.tools.benchmarks.worst.requests import Candidate, candidates
from odradek.tools.benchmarks.worst.scene import Scene

from .conftest import Bench

TOPIC = "orders"
REQUEST_BYTES = 10_000
ALWAYS = {ApiKey.ALTER_CONFIGS, ApiKey.CREATE_PARTITIONS, ApiKey.DESCRIBE_PRODUCERS}
"""APIs that are tried in every run: they kept refusals, each in another way."""
LEFT_MAX = 100
"""Objects that a connection, a timer or a library may leave, however long the request."""


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Whatever is in a cycle stays."""
    was_enabled = gc.isenabled()
    gc.disable()
    yield
    if was_enabled:
        gc.enable()


async def send(bench: Bench, candidate: Candidate) -> bool:
    """Send a request and wait until it is answered; False where its connection is closed."""
    client = bench.another_client()
    connection = client.connection
    connection.process([memoryview(bytearray(candidate.frame[4:]))])
    bench.broker.server.finish_outside_work()
    with trio.fail_after(60):
        while connection.unanswered and not connection.is_closing:
            await client.woken()
    return not connection.is_closing


def left_in_cycles() -> Counter[str]:
    """Objects that only a collection frees, by type."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        return Counter(type(each).__qualname__ for each in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


@pytest.mark.parametrize(
    "api",
    [
        pytest.param(api, marks=slow_unless(api in ALWAYS), id=api.name)
        for api in sorted(REGISTRATIONS)
    ],
)
async def test_a_long_request_leaves_no_more_garbage_than_a_short_one(
    bench: Bench, uncollected: None, api: ApiKey
) -> None:
    topic_id = await bench.create_topic(TOPIC)
    for kind in (0, 1):
        request = messages.FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"])
        await bench.client.call(request, 4)
    scene = Scene(bench.broker.broker_id, [TOPIC], 1, {TOPIC: topic_id}, ["g"], ["x"], ["/none"])
    answered = 0
    found: dict[str, object] = {}
    for candidate in candidates(api, scene, REQUEST_BYTES):
        if not await send(bench, candidate):
            continue
        answered += 1
        gc.freeze()  # only what comes now is looked at, however much the run holds
        await send(bench, candidate)
        left = left_in_cycles()
        if left.total() > LEFT_MAX:
            found[candidate.shape] = left.total(), left.most_common(5)
    assert answered
    assert found == {}
