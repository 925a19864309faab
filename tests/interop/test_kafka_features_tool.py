"""Kafka's own kafka-features tool against the broker."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

TOOL = "org.apache.kafka.tools.FeatureCommand"


def levels(reported: str) -> dict[str, tuple[str, str, str]]:
    """Smallest, largest and finalized level by feature, as `describe` tells them."""
    found = {}
    for line in reported.splitlines():
        words = line.split()
        if words[:1] == ["Feature:"]:
            said = dict(zip(words[::2], words[1::2], strict=True))
            found[said["Feature:"]] = (
                said["SupportedMinVersion:"],
                said["SupportedMaxVersion:"],
                said["FinalizedVersionLevel:"],
            )
    return found


def test_the_features_tool_describes_and_moves_levels(java, start_broker) -> None:
    broker = start_broker()
    bootstrap = ("--bootstrap-server", broker.bootstrap)

    def features(*arguments: str) -> str:
        return java(TOOL, *bootstrap, *arguments)

    assert levels(features("describe")) == {
        "group.version": ("0", "1", "1"),
        "share.version": ("0", "1", "1"),
        "streams.version": ("0", "1", "1"),
        "transaction.version": ("0", "2", "2"),
    }
    features("downgrade", "--feature", "transaction.version=1", "--dry-run")
    assert levels(features("describe"))["transaction.version"][2] == "2"
    features("downgrade", "--feature", "transaction.version=1")
    features("disable", "--feature", "group.version", "--unsafe")
    after = levels(features("describe"))
    assert (after["transaction.version"][2], after["group.version"][2]) == ("1", "0")
    features("upgrade", "--feature", "transaction.version=2", "--feature", "group.version=1")
    after = levels(features("describe"))
    assert (after["transaction.version"][2], after["group.version"][2]) == ("2", "1")


def test_the_features_tool_says_why_an_upgrade_is_refused(tools, start_broker) -> None:
    bootstrap = ("--bootstrap-server", start_broker().bootstrap)
    refused = tools.run(TOOL, *bootstrap, "upgrade", "--feature", "transaction.version=3")
    assert refused.returncode == 1
    assert "Invalid update version 3 for feature transaction.version" in (
        refused.stdout + refused.stderr
    )
