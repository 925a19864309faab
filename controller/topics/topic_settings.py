"""Topic settings that the controller itself acts on."""

from __future__ import annotations

from collections.abc import Mapping

from ...config.broker_config import BrokerConfig
from ...config.topic_configs import topic_values


def allows_unclean_election(overrides: Mapping[str, str], config: BrokerConfig) -> bool:
    """Whether a topic would rather lose records than stay without a leader."""
    allowed: bool = topic_values(config, overrides)["unclean.leader.election.enable"]
    return allowed
