"""The controller decides which features are finalized, and writes it to `/feature`.

What may change follows Kafka 4.3's FeatureControlManager; how it is kept, Kafka 3.9's
KafkaController. A request is done whole or not at all. Before the first change there is no node,
and the defaults hold: Kafka 3.9 starts on such a tree, but on none that finalizes what came later.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Iterable, Mapping

from ..common.errors import ErrorCode, KafkaError
from ..common.live_broker import LiveBroker
from ..common.named_tuple import NamedTuple
from ..metadata.features import DEFAULT_LEVELS, SUPPORTED
from ..metadata_store.errors import BadVersion, MetadataStoreError, NodeExists, NoNode
from ..metadata_store.store import Create, SetData, StoredNode
from ..metadata_store.znodes import (
    FEATURE,
    FEATURE_VERSION,
    CorruptNode,
    FeatureNode,
    decode_feature,
    encode_feature,
)
from .fenced_store import FencedStore

logger = logging.getLogger(__name__)

WRITE_ATTEMPTS_MAX = 20
"""How often a write begins anew because somebody else changed the node."""


NAME_SHOWN_MAX = 100
"""How much of a feature's name stands in an answer; clients may send any."""


class UpgradeType(enum.IntEnum):
    """How a level may change (FeatureUpdate.UpgradeType); any other number is refused."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """A feature's requested level, and the kind of change, as its number."""

    name: str
    level: int
    upgrade_type: int


async def enable_features(store: FencedStore) -> None:
    """Bring a node that brokers older than Kafka 2.7 left disabled into use, without features.

    Kafka 3.9 does so as well. A node that cannot be read stays as it is, and so does a cluster
    without the node: it goes by the defaults.
    """
    node = await _read(store)
    if node is None:
        return
    try:
        said = decode_feature(node.data)
    except CorruptNode as error:
        logger.error("%s stays as it is: %s", FEATURE, error)
        return
    if said.is_enabled and said.version == FEATURE_VERSION:
        return
    levels = dict(said.levels) if said.is_enabled else {}
    try:
        await store.multi([SetData(FEATURE, encode_feature(FeatureNode(levels)), node.version)])
    except (NoNode, BadVersion):
        await enable_features(store)  # another hand was in it: look again


async def update_features(
    store: FencedStore,
    controller_id: int,
    brokers: Mapping[int, LiveBroker],
    updates: Iterable[FeatureUpdate],
    *,
    validate_only: bool,
) -> None:
    """Change finalized levels, all of the updates or none.

    Args:
        controller_id: the controller's broker id, for the error's text.
        brokers: all live brokers; each must support the new levels.
        updates: of two for one feature the later counts, as with Kafka.
        validate_only: write nothing.

    Raises:
        KafkaError: INVALID_UPDATE_VERSION, or FEATURE_UPDATE_FAILED where the store refused.
        ControllerMoved: this broker is not the controller any more.
    """
    by_name = {update.name: update for update in updates}
    for _ in range(WRITE_ATTEMPTS_MAX):
        try:
            node = await _read(store)
            present = FeatureNode(DEFAULT_LEVELS) if node is None else decode_feature(node.data)
        except (MetadataStoreError, CorruptNode) as error:
            raise KafkaError(ErrorCode.FEATURE_UPDATE_FAILED, str(error)) from error
        levels = dict(present.levels) if present.is_enabled else {}
        for update in by_name.values():
            reason = why_not(update, levels.get(update.name, 0), controller_id, brokers)
            if reason is not None:
                raise KafkaError(
                    ErrorCode.INVALID_UPDATE_VERSION,
                    "The update failed for all features since the following feature had an "
                    f"error: Invalid update version {update.level} for feature "
                    f"{update.name[:NAME_SHOWN_MAX]}. {reason}",
                )
        target = levels | {update.name: update.level for update in by_name.values()}
        target = {name: level for name, level in target.items() if level > 0}
        if validate_only or (target == levels and present.is_enabled):
            return
        if await _write(store, node, FeatureNode(target)):
            return
    raise KafkaError(ErrorCode.FEATURE_UPDATE_FAILED, "Others kept changing the features.")


def why_not(
    update: FeatureUpdate, level: int, controller_id: int, brokers: Mapping[int, LiveBroker]
) -> str | None:
    """Why an update is refused; None if it is not.

    Args:
        update: the update.
        controller_id: the controller's broker id.
        level: the level that is finalized now.
        brokers: all live brokers.
    """
    if update.upgrade_type not in UpgradeType.__members__.values():
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    supported = {each.name: each for each in SUPPORTED}.get(update.name)
    controller = f"Local controller {controller_id}"
    if supported is None:
        return f"{controller} does not support this feature."
    if not supported.holds(update.level):
        return (
            f"{controller} only supports versions {supported.min_version}-{supported.max_version}"
        )
    for broker_id, broker in sorted(brokers.items()):
        theirs = {each.name: each for each in broker.features}.get(update.name)
        if update.level > 0 and theirs is None:
            return f"Broker {broker_id} does not support this feature."
        if update.level > 0 and theirs is not None and not theirs.holds(update.level):
            versions = f"{theirs.min_version}-{theirs.max_version}"
            return f"Broker {broker_id} only supports versions {versions}"
    if update.level < level and update.upgrade_type == UpgradeType.UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    if update.level > level and update.upgrade_type != UpgradeType.UPGRADE:
        return "Can't downgrade to a newer version."
    return None


async def _read(store: FencedStore) -> StoredNode | None:
    (node,) = await store.store.get_many([FEATURE])
    return node


async def _write(store: FencedStore, node: StoredNode | None, features: FeatureNode) -> bool:
    """Whether the node was still as it was read.

    Raises:
        KafkaError: FEATURE_UPDATE_FAILED.
    """
    data = encode_feature(features)
    operation = Create(FEATURE, data) if node is None else SetData(FEATURE, data, node.version)
    try:
        await store.multi([operation])
    except (NodeExists, NoNode, BadVersion):
        return False
    except MetadataStoreError as error:
        raise KafkaError(ErrorCode.FEATURE_UPDATE_FAILED, str(error)) from error
    logger.info("finalized features: %s", features.levels or "none")
    return True
