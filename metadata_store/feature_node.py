"""`/feature`: which features a cluster has finalized, in Kafka's JSON (KIP-584).

After FeatureZNode in Kafka's ZkData.scala: version 1 said a smallest level as well, version 2
only the one level that is in force.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from .znodes import CorruptNode

FEATURE: Final = "/feature"

NODE_VERSION: Final = 2
NODE_VERSIONS: Final = (1, 2)

DISABLED: Final = 0
ENABLED: Final = 1
"""What the node's `status` says: under brokers older than Kafka 2.7 features meant nothing."""

LEVEL_MAX: Final = 2**15 - 1


class FeatureNode(NamedTuple):
    """What the node says.

    Attributes:
        levels: finalized level by feature; a feature that is not there has level 0.
        is_enabled: whether `levels` count; brokers older than Kafka 2.7 left the node disabled.
        version: of the node's JSON.
    """

    levels: Mapping[str, int]
    is_enabled: bool = True
    version: int = NODE_VERSION


def encode_feature(node: FeatureNode) -> bytes:
    """`/feature`, in the newest version of its JSON."""
    return json.dumps(
        {
            "features": {
                name: {"max_version_level": level} for name, level in sorted(node.levels.items())
            },
            "version": NODE_VERSION,
            "status": ENABLED if node.is_enabled else DISABLED,
        },
        separators=(",", ":"),
    ).encode()


def decode_feature(data: bytes) -> FeatureNode:
    """`/feature`. Raises CorruptNode."""
    try:
        value = json.loads(data)
        version, status = int(value["version"]), int(value["status"])
        levels = {
            str(name): int(said["max_version_level"])
            for name, said in value.get("features", {}).items()
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptNode(f"no features: {data[:80]!r}") from error
    if version not in NODE_VERSIONS or status not in (DISABLED, ENABLED):
        raise CorruptNode(f"features of a version or status that is not known: {data[:80]!r}")
    if not all(0 <= level <= LEVEL_MAX for level in levels.values()):
        raise CorruptNode(f"features at levels that cannot be: {data[:80]!r}")
    finalized = {name: level for name, level in levels.items() if level > 0}
    return FeatureNode(finalized, status == ENABLED, version)
