"""Administrators that move the finalized levels of features, up and down (KIP-584)."""

from __future__ import annotations

from ....metadata.features import SUPPORTED
from ....protocol import messages
from .client import SimulatedClient

UPGRADE, SAFE_DOWNGRADE = 1, 2
TIMEOUT_MS = 4_000


class FeatureAdmin(SimulatedClient):
    """One of them. What became of a level is seen at rest: all go by what the store says."""

    async def act(self) -> None:
        """Move one level. Raises ClientError."""
        feature = self.random.choice(SUPPORTED)
        update = messages.UpdateFeaturesRequest.FeatureUpdateKey(
            feature=feature.name,
            max_version_level=self.random.randint(feature.min_version, feature.max_version),
            upgrade_type=self.random.choice((UPGRADE, SAFE_DOWNGRADE)),
        )
        request = messages.UpdateFeaturesRequest(timeout_ms=TIMEOUT_MS, feature_updates=[update])
        answer = await self.request(self.any_broker(), request)
        if not answer.error_code:
            self.cluster.trace(
                f"{self.name} has moved {feature.name} to level {update.max_version_level}"
            )
