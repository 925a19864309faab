"""How AlterConfigs and IncrementalAlterConfigs change a resource's settings."""

from __future__ import annotations

import pytest

from odradek.common.errors import ErrorCode, KafkaError
from odradek.config.alterations import (
    AlterOperation,
    ConfigAlteration,
    alter_config,
    check_alterations,
)
from odradek.config.tables.topic_table import TOPIC_DEFINITIONS

SET, DELETE, APPEND, SUBTRACT = AlterOperation


@pytest.mark.parametrize(
    ("current", "alterations", "altered"),
    [
        ({}, [("retention.ms", SET, "5")], {"retention.ms": "5"}),
        ({"retention.ms": "5"}, [("retention.ms", DELETE, None)], {}),
        ({}, [("retention.ms", DELETE, None)], {}),
        ({}, [("no.such.setting", DELETE, None)], {}),
        ({}, [("cleanup.policy", APPEND, "compact")], {"cleanup.policy": "delete,compact"}),
        (
            {"cleanup.policy": "delete"},
            [("cleanup.policy", APPEND, "delete,compact")],
            {"cleanup.policy": "delete,compact"},
        ),
        (
            {"cleanup.policy": "compact,delete"},
            [("cleanup.policy", SUBTRACT, "delete")],
            {"cleanup.policy": "compact"},
        ),
        (
            {"retention.ms": "5", "segment.bytes": "2000000"},
            [("retention.ms", SET, "6")],
            {"retention.ms": "6", "segment.bytes": "2000000"},
        ),
    ],
)
def test_settings_are_altered_as_kafka_does(
    current: dict[str, str],
    alterations: list[tuple[str, int, str | None]],
    altered: dict[str, str],
) -> None:
    changes = [ConfigAlteration(*alteration) for alteration in alterations]
    before = dict(current)
    assert alter_config(current, changes, TOPIC_DEFINITIONS) == altered
    assert current == before


@pytest.mark.parametrize(
    ("value", "altered"),
    [
        ("compact,,", "delete,compact"),
        (",compact", "delete,,compact"),
        ("", "delete,"),
        (",", "delete"),
        (" compact", "delete, compact"),
    ],
)
def test_items_to_append_are_split_as_java_splits_them(value: str, altered: str) -> None:
    changes = [ConfigAlteration("cleanup.policy", APPEND, value)]
    assert alter_config({}, changes, TOPIC_DEFINITIONS) == {"cleanup.policy": altered}


@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
@pytest.mark.parametrize("name", ["no.such.setting", "retention.ms"])
def test_what_is_no_list_cannot_be_appended_to(name: str, operation: int) -> None:
    with pytest.raises(KafkaError) as refusal:
        alter_config({}, [ConfigAlteration(name, operation, "5")], TOPIC_DEFINITIONS)
    assert refusal.value.code is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    "alterations",
    [
        [("retention.ms", SET, "5"), ("retention.ms", DELETE, None)],
        [("retention.ms", SET, None)],
        [("cleanup.policy", APPEND, None)],
        [("retention.ms", 7, "5")],
        [("retention.ms", -1, "5")],
    ],
)
def test_senseless_alterations_are_invalid_requests(
    alterations: list[tuple[str, int, str | None]],
) -> None:
    with pytest.raises(KafkaError) as refusal:
        check_alterations([ConfigAlteration(*alteration) for alteration in alterations])
    assert refusal.value.code is ErrorCode.INVALID_REQUEST
