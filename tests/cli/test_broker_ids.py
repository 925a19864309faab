"""The ids of several brokers of one process."""

from __future__ import annotations

import pytest

from odradek.cli.serve.command import overrides_of_each
from odradek.config.definition import ConfigError

PLACE = {"listeners": "PLAINTEXT://localhost:9092", "log.dirs": "data"}


@pytest.mark.parametrize(
    ("properties", "overrides", "ids"),
    [
        ({}, {}, ["1", "2", "3"]),
        ({}, {"broker.id": "5"}, ["5", "6", "7"]),
        ({"broker.id": "8"}, {}, ["8", "9", "10"]),
        ({"broker.id": "8"}, {"broker.id": "0"}, ["0", "1", "2"]),
    ],
    ids=["none is given", "--broker-id", "in the file", "--broker-id counts"],
)
def test_brokers_are_numbered_from_the_id_that_is_given(
    properties: dict[str, str], overrides: dict[str, str], ids: list[str]
) -> None:
    each = overrides_of_each(3, properties, {**PLACE, **overrides})
    assert [one["broker.id"] for one in each] == ids
    assert [one["log.dirs"] for one in each] == [f"data/broker-{number}" for number in ids]


@pytest.mark.parametrize("text", ["-1", "one"])
def test_an_id_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=f"--brokers needs .* not {text}"):
        overrides_of_each(2, {}, {**PLACE, "broker.id": text})
