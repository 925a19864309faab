"""ApiVersions' features and UpdateFeatures, asked of a whole broker."""

from typing import TYPE_CHECKING, Any

import pytest

from odradek.common.errors import ErrorCode
from odradek.protocol import messages

if TYPE_CHECKING:
    from conftest import Bench

GROUP = "group.version"
SHARE = "share.version"
STREAMS = "streams.version"
TRANSACTION = "transaction.version"
SAFE_DOWNGRADE = 2

Update = messages.UpdateFeaturesRequest.FeatureUpdateKey


async def api_versions(bench: "Bench", version: int) -> messages.ApiVersionsResponse:
    request = messages.ApiVersionsRequest(client_software_name="x", client_software_version="1")
    answer: messages.ApiVersionsResponse = await bench.client.call(request, version)
    return answer


async def update(bench: "Bench", version: int, *updates: Update, **fields: Any) -> Any:
    request = messages.UpdateFeaturesRequest(
        timeout_ms=5000, feature_updates=list(updates), **fields
    )
    return await bench.client.call(request, version)


def finalized(answer: messages.ApiVersionsResponse) -> dict[str, tuple[int, int]]:
    return {
        each.name: (each.min_version_level, each.max_version_level)
        for each in answer.finalized_features
    }


def supported(answer: messages.ApiVersionsResponse) -> dict[str, tuple[int, int]]:
    return {each.name: (each.min_version, each.max_version) for each in answer.supported_features}


async def test_a_new_broker_has_finalized_what_kafka_4_3_does(bench: "Bench") -> None:
    answer = await api_versions(bench, 4)
    assert supported(answer) == {GROUP: (0, 1), SHARE: (0, 1), STREAMS: (0, 1), TRANSACTION: (0, 2)}
    assert finalized(answer) == {GROUP: (1, 1), SHARE: (1, 1), STREAMS: (1, 1), TRANSACTION: (2, 2)}
    assert answer.finalized_features_epoch == 0
    assert not answer.zk_migration_ready


async def test_what_begins_at_level_0_is_left_out_before_version_4(bench: "Bench") -> None:
    answer = await api_versions(bench, 3)
    assert supported(answer) == {}
    assert finalized(answer) == {GROUP: (1, 1), SHARE: (1, 1), STREAMS: (1, 1), TRANSACTION: (2, 2)}
    for version in range(3):
        older = await api_versions(bench, version)
        assert (older.supported_features, older.finalized_features) == ([], [])


async def test_a_change_is_in_force_when_it_is_answered(bench: "Bench") -> None:
    heard: list[tuple[str, int]] = []
    bench.broker.features.on_change(lambda name, level: heard.append((name, level)))
    down = Update(feature=TRANSACTION, max_version_level=1, upgrade_type=SAFE_DOWNGRADE)
    off = Update(feature=GROUP, max_version_level=0, upgrade_type=SAFE_DOWNGRADE)
    answer = await update(bench, 2, down, off)
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    assert heard == [(GROUP, 0), (TRANSACTION, 1)]
    after = await api_versions(bench, 4)
    assert finalized(after) == {SHARE: (1, 1), STREAMS: (1, 1), TRANSACTION: (1, 1)}
    assert after.finalized_features_epoch == 1
    up = Update(feature=GROUP, max_version_level=1)
    assert (await update(bench, 2, up)).error_code == ErrorCode.NONE
    assert finalized(await api_versions(bench, 4)) == {
        GROUP: (1, 1),
        SHARE: (1, 1),
        STREAMS: (1, 1),
        TRANSACTION: (1, 1),
    }


@pytest.mark.parametrize("version", [1, 2])
async def test_validation_changes_nothing(bench: "Bench", version: int) -> None:
    down = Update(feature=TRANSACTION, max_version_level=1, upgrade_type=SAFE_DOWNGRADE)
    answer = await update(bench, version, down, validate_only=True)
    assert answer.error_code == ErrorCode.NONE
    assert (await api_versions(bench, 4)).finalized_features_epoch == 0


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_results_are_told_feature_by_feature_up_to_version_1(
    bench: "Bench", version: int
) -> None:
    there = Update(feature=GROUP, max_version_level=1)
    answer = await update(bench, version, there)
    expected = [(GROUP, ErrorCode.NONE)] if version < 2 else []
    assert [(each.feature, each.error_code) for each in answer.results] == expected


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_a_refusal_says_which_feature_and_why(bench: "Bench", version: int) -> None:
    there = Update(feature=GROUP, max_version_level=1)
    too_high = Update(feature=TRANSACTION, max_version_level=3)
    answer = await update(bench, version, there, too_high)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert TRANSACTION in answer.error_message
    assert answer.results == []


async def test_version_0_does_not_downgrade_either_way(bench: "Bench") -> None:
    down = Update(feature=GROUP, max_version_level=0, allow_downgrade=True)
    assert (await update(bench, 0, down)).error_code == ErrorCode.INVALID_UPDATE_VERSION


async def test_who_may_not_alter_the_cluster_changes_nothing(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.authorize_by(lambda request, operation, *_: operation != "ALTER")
    off = Update(feature=GROUP, max_version_level=0, upgrade_type=SAFE_DOWNGRADE)
    answer = await update(bench, 2, off)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert bench.broker.features.finalized(GROUP) == 1
