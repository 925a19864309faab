"""Features: what the node says, what may change, and how brokers follow."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest
import trio
import trio.testing
from support.unsynced_store import UnsyncedStore

from odradek.broker.interbroker.feature_follower import FeatureFollower, FeaturesNotSupported
from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.live_broker import EndPoint, FeatureRange, LiveBroker
from odradek.controller.feature_levels import (
    FeatureUpdate,
    UpgradeType,
    enable_features,
    update_features,
    why_not,
)
from odradek.controller.fenced_store import ControllerMoved, FencedStore
from odradek.controller.registration import try_to_become_controller
from odradek.metadata.features import (
    DEFAULT_LEVELS,
    DEFAULTS_EPOCH,
    EPOCH_UNKNOWN,
    SUPPORTED,
    Features,
)
from odradek.metadata_store import znodes
from odradek.metadata_store.embedded.embedded_store import EmbeddedStore
from odradek.metadata_store.errors import StoreUnreachable
from odradek.metadata_store.store import MetadataStore, StoredNode
from odradek.metadata_store.znodes import FeatureNode, decode_feature, encode_feature
from odradek.runtime.clock import ManualClock

GROUP = "group.version"
SHARE = "share.version"
STREAMS = "streams.version"
TRANSACTION = "transaction.version"
UP, SAFE, UNSAFE = UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE

RECORDED = b'{"features":{},"version":2,"status":1}'
"""What a controller of Kafka 3.9.0 wrote."""

OF_KAFKA_2_8 = (
    b'{"features":{"x.version":{"max_version_level":2,"min_version_level":1}},'
    b'"version":1,"status":1}'
)
"""As the comments of Kafka's FeatureZNode have version 1."""

NEW = LiveBroker(1, (EndPoint("PLAINTEXT", "h", 9092),), features=SUPPORTED)
OLD = NEW._replace(broker_id=2, features=())
HALF = NEW._replace(broker_id=3, features=(FeatureRange(TRANSACTION, 0, 1),))


# -- the node ---------------------------------------------------------------------------------


def test_a_node_that_kafka_wrote_is_read() -> None:
    assert decode_feature(RECORDED) == FeatureNode({}, True, 2)
    assert decode_feature(OF_KAFKA_2_8) == FeatureNode({"x.version": 2}, True, 1)


def test_a_node_is_written_as_kafka_writes_it() -> None:
    assert encode_feature(FeatureNode({})) == RECORDED
    assert json.loads(encode_feature(FeatureNode({GROUP: 1}))) == {
        "features": {GROUP: {"max_version_level": 1}},
        "version": 2,
        "status": 1,
    }


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"null",
        b'{"features":{},"version":3,"status":1}',
        b'{"features":{},"version":2,"status":2}',
        b'{"features":{},"version":2}',
        b'{"features":{"x":1},"version":2,"status":1}',
        b'{"features":{"x":{"max_version_level":-1}},"version":2,"status":1}',
        b'{"features":{"x":{"max_version_level":40000}},"version":2,"status":1}',
    ],
)
def test_a_node_that_no_kafka_writes_is_refused(data: bytes) -> None:
    with pytest.raises(znodes.CorruptNode):
        decode_feature(data)


def test_a_registration_says_what_the_broker_supports() -> None:
    data = znodes.encode_broker(NEW, 1)
    assert json.loads(data)["features"] == {
        GROUP: {"min_version": 0, "max_version": 1},
        SHARE: {"min_version": 0, "max_version": 1},
        STREAMS: {"min_version": 0, "max_version": 1},
        TRANSACTION: {"min_version": 0, "max_version": 2},
    }
    assert znodes.decode_broker(data, 1, -1) == NEW


# -- what a broker knows ----------------------------------------------------------------------


def test_listeners_hear_of_levels_that_changed() -> None:
    features = Features()
    heard: list[tuple[str, int]] = []
    features.on_change(lambda name, level: heard.append((name, level)))
    assert (features.finalized(GROUP), features.epoch) == (0, EPOCH_UNKNOWN)
    features.take_up({GROUP: 1, TRANSACTION: 2}, 0)
    features.take_up({TRANSACTION: 1, GROUP: 1}, 1)
    features.take_up({GROUP: 1}, 2)
    assert heard == [(GROUP, 1), (TRANSACTION, 2), (TRANSACTION, 1), (TRANSACTION, 0)]
    assert (features.finalized(GROUP), features.finalized(TRANSACTION)) == (1, 0)
    assert features.epoch == 2


# -- what may change --------------------------------------------------------------------------

OF_KAFKA_4_3_1 = [
    (FeatureUpdate(GROUP, 0, UP), False),
    (FeatureUpdate(GROUP, 0, SAFE), True),
    (FeatureUpdate(GROUP, 0, UNSAFE), True),
    (FeatureUpdate(GROUP, 1, UP), True),
    (FeatureUpdate(GROUP, 1, SAFE), True),
    (FeatureUpdate(GROUP, 2, UP), False),
    (FeatureUpdate(GROUP, -1, UP), False),
    (FeatureUpdate(GROUP, -1, SAFE), False),
    (FeatureUpdate(GROUP, 1, 0), False),
    (FeatureUpdate(GROUP, 1, 9), False),
    (FeatureUpdate(TRANSACTION, 1, SAFE), True),
    (FeatureUpdate(TRANSACTION, 3, UP), False),
    (FeatureUpdate("", 1, UP), False),
    (FeatureUpdate("nope", 1, UP), False),
    (FeatureUpdate("nope", 0, SAFE), False),
]
"""Asked of a Kafka 4.3.1 with `validate_only`, at group.version 1 and transaction.version 2."""


@pytest.mark.parametrize(("update", "is_done"), OF_KAFKA_4_3_1)
def test_what_kafka_refuses_is_refused(update: FeatureUpdate, is_done: bool) -> None:
    level = {GROUP: 1, TRANSACTION: 2}.get(update.name, 0)
    assert (why_not(update, level, 1, {1: NEW}) is None) == is_done


def test_a_downgrade_does_not_raise_a_level() -> None:
    assert why_not(FeatureUpdate(GROUP, 1, SAFE), 0, 1, {1: NEW}) is not None
    assert why_not(FeatureUpdate(GROUP, 1, UP), 0, 1, {1: NEW}) is None


def test_every_live_broker_has_to_support_a_level() -> None:
    brokers = {1: NEW, 3: HALF}
    assert why_not(FeatureUpdate(TRANSACTION, 1, UP), 0, 1, brokers) is None
    refusal = why_not(FeatureUpdate(TRANSACTION, 2, UP), 0, 1, brokers)
    assert refusal is not None
    assert "Broker 3" in refusal
    assert why_not(FeatureUpdate(GROUP, 0, SAFE), 1, 1, {1: NEW, 2: OLD}) is None


# -- the controller writes --------------------------------------------------------------------


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_795_226_872_357)


@pytest.fixture
async def store(tmp_path: Path, clock: ManualClock) -> AsyncIterator[EmbeddedStore]:
    store = UnsyncedStore(tmp_path / "metadata.sqlite", clock=clock)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def other_store(
    tmp_path: Path, clock: ManualClock, store: EmbeddedStore
) -> AsyncIterator[EmbeddedStore]:
    other = UnsyncedStore(tmp_path / "metadata.sqlite", clock=clock)
    await other.open()
    yield other
    await other.close()


@pytest.fixture
async def fenced(store: EmbeddedStore) -> FencedStore:
    """The store as broker 1 writes to it, which has been elected."""
    election = await try_to_become_controller(store, 1, 1)
    assert election is not None
    return FencedStore(store, election.epoch_version)


async def levels_in(store: MetadataStore) -> dict[str, int]:
    return dict(decode_feature((await store.get("/feature")).data).levels)


async def test_a_new_cluster_has_no_node_so_that_kafka_3_9_starts_on_it(
    fenced: FencedStore,
) -> None:
    await enable_features(fenced)
    assert await fenced.store.get_many(["/feature"]) == [None]
    assert DEFAULT_LEVELS == {GROUP: 1, SHARE: 1, STREAMS: 1, TRANSACTION: 2}


async def test_a_cluster_that_was_taken_over_keeps_its_levels(fenced: FencedStore) -> None:
    await fenced.store.create("/feature", RECORDED)
    await enable_features(fenced)
    node = await fenced.store.get("/feature")
    assert (node.data, node.version) == (RECORDED, 0)


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        (RECORDED.replace(b'"status":1', b'"status":0'), {}),
        (OF_KAFKA_2_8.replace(b'"status":1', b'"status":0'), {}),
        (OF_KAFKA_2_8, {"x.version": 2}),
    ],
)
async def test_an_old_or_disabled_node_is_brought_up_as_by_kafka_3_9(
    fenced: FencedStore, found: bytes, kept: dict[str, int]
) -> None:
    await fenced.store.create("/feature", found)
    await enable_features(fenced)
    node = await fenced.store.get("/feature")
    assert decode_feature(node.data) == FeatureNode(kept, True, 2)


async def test_a_node_that_cannot_be_read_stays(fenced: FencedStore) -> None:
    await fenced.store.create("/feature", b"{")
    await enable_features(fenced)
    assert (await fenced.store.get("/feature")).data == b"{"
    with pytest.raises(KafkaError) as refusal:
        await update_features(
            fenced, 1, {1: NEW}, [FeatureUpdate(GROUP, 0, SAFE)], validate_only=False
        )
    assert refusal.value.code is ErrorCode.FEATURE_UPDATE_FAILED


async def test_updates_are_done_all_or_none(fenced: FencedStore) -> None:
    with pytest.raises(KafkaError) as refusal:
        await update_features(
            fenced,
            1,
            {1: NEW},
            [FeatureUpdate(TRANSACTION, 1, SAFE), FeatureUpdate(GROUP, 2, UP)],
            validate_only=False,
        )
    assert refusal.value.code is ErrorCode.INVALID_UPDATE_VERSION
    assert GROUP in str(refusal.value.message)
    assert await fenced.store.get_many(["/feature"]) == [None]
    await update_features(
        fenced,
        1,
        {1: NEW},
        [FeatureUpdate(TRANSACTION, 1, SAFE), FeatureUpdate(GROUP, 0, UNSAFE)],
        validate_only=False,
    )
    assert await levels_in(fenced.store) == {SHARE: 1, STREAMS: 1, TRANSACTION: 1}


async def test_a_request_for_what_is_there_writes_nothing(fenced: FencedStore) -> None:
    async def target(update: FeatureUpdate, *, validate_only: bool = False) -> None:
        await update_features(fenced, 1, {1: NEW}, [update], validate_only=validate_only)

    await target(FeatureUpdate(GROUP, 1, UP))
    await target(FeatureUpdate(GROUP, 0, SAFE), validate_only=True)
    assert await fenced.store.get_many(["/feature"]) == [None]
    await target(FeatureUpdate(GROUP, 0, SAFE))
    await target(FeatureUpdate(GROUP, 0, SAFE))
    assert (await fenced.store.get("/feature")).version == 0


async def test_a_controller_that_was_replaced_changes_nothing(
    fenced: FencedStore, other_store: EmbeddedStore
) -> None:
    await other_store.set("/controller_epoch", b"2")
    with pytest.raises(ControllerMoved):
        await update_features(
            fenced, 1, {1: NEW}, [FeatureUpdate(GROUP, 0, SAFE)], validate_only=False
        )
    assert await other_store.get_many(["/feature"]) == [None]


# -- every broker follows ---------------------------------------------------------------------


class Following:
    """A broker's features, kept current from a store."""

    def __init__(self, store: EmbeddedStore, nursery: trio.Nursery) -> None:
        self.store = store
        self.features = Features()
        self.refused: list[FeaturesNotSupported] = []
        self._nursery = nursery
        self.follower = FeatureFollower(store, self.features, self._start, self.refused.append)

    def _start(self, function: Callable[[], Awaitable[None]]) -> None:
        self._nursery.start_soon(function)

    async def look(self) -> None:
        """What a running store does from time to time; what follows from it is done after."""
        self.store.poll(1_795_226_872_357)
        await trio.testing.wait_all_tasks_blocked()


@pytest.fixture
async def following(store: EmbeddedStore, nursery: trio.Nursery) -> Following:
    return Following(store, nursery)


async def test_changes_of_others_are_followed(
    following: Following, other_store: EmbeddedStore
) -> None:
    await following.follower.start()
    assert following.features.levels == DEFAULT_LEVELS
    assert following.features.epoch == DEFAULTS_EPOCH
    await other_store.create("/feature", encode_feature(FeatureNode({GROUP: 1})))
    await following.look()
    assert dict(following.features.levels) == {GROUP: 1}
    assert following.features.epoch == DEFAULTS_EPOCH + 1
    await other_store.set("/feature", encode_feature(FeatureNode({TRANSACTION: 2})))
    await following.look()
    assert dict(following.features.levels) == {TRANSACTION: 2}
    assert following.features.epoch == DEFAULTS_EPOCH + 2


async def test_a_change_that_could_not_be_read_is_read_later(
    following: Following, other_store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session may go on as if nothing had been: no event would have it read."""
    await following.follower.start()
    real = following.store.get_many
    changed = trio.Event()
    following.features.on_change(lambda name, level: changed.set())

    async def get_many(paths: Sequence[str]) -> list[StoredNode | None]:
        monkeypatch.setattr(following.store, "get_many", real)
        raise StoreUnreachable("metadata.sqlite", "it is locked")

    monkeypatch.setattr(following.store, "get_many", get_many)
    await other_store.create("/feature", encode_feature(FeatureNode({GROUP: 1})))
    await following.look()
    with trio.fail_after(20):
        await changed.wait()
    assert dict(following.features.levels) == {GROUP: 1}


async def test_changes_are_followed_after_the_session_was_another(
    following: Following, other_store: EmbeddedStore
) -> None:
    await other_store.create("/feature", encode_feature(FeatureNode({GROUP: 1})))
    await following.follower.start()
    await following.store.close()
    await other_store.set("/feature", encode_feature(FeatureNode({TRANSACTION: 1})))
    await following.store.open()
    await trio.testing.wait_all_tasks_blocked()
    assert following.features.finalized(TRANSACTION) == 1
    await other_store.set("/feature", encode_feature(FeatureNode({TRANSACTION: 2})))
    await following.look()
    assert following.features.finalized(TRANSACTION) == 2


async def test_what_is_disabled_or_unreadable_counts_for_nothing(
    following: Following, other_store: EmbeddedStore
) -> None:
    disabled = FeatureNode({GROUP: 1}, is_enabled=False)
    await other_store.create("/feature", encode_feature(disabled))
    await following.follower.start()
    assert following.features.finalized(GROUP) == 0
    await other_store.set("/feature", encode_feature(FeatureNode({GROUP: 1})))
    await following.look()
    assert following.features.finalized(GROUP) == 1
    await other_store.set("/feature", b"nonsense")
    await following.look()
    assert following.features.finalized(GROUP) == 0


@pytest.mark.parametrize("levels", [{TRANSACTION: 3}, {"metadata.version": 30}])
async def test_a_broker_is_not_of_a_cluster_with_levels_it_does_not_have(
    following: Following, other_store: EmbeddedStore, levels: dict[str, int]
) -> None:
    await other_store.create("/feature", encode_feature(FeatureNode({GROUP: 1})))
    await following.follower.start()
    await other_store.set("/feature", encode_feature(FeatureNode(levels)))
    await following.look()
    (refusal,) = following.refused
    assert next(iter(levels)) in str(refusal)
    with pytest.raises(FeaturesNotSupported):
        await following.follower.read()
    assert following.features.finalized(GROUP) == 1, "it goes by what it has until it ends"
