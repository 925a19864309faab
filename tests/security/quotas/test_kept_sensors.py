"""Sensors of clients that nobody has heard of before: how many are kept, and which."""

from __future__ import annotations

import pytest

from odradek.security.quotas import kept_sensors
from odradek.security.quotas.connection_rates import ConnectionRates
from odradek.security.quotas.entity import CLIENT_ID, ClientQuotaEntity
from odradek.security.quotas.kept_sensors import INACTIVE_MS, KeptSensors
from odradek.security.quotas.quota_managers import QuotaManagers, Windows
from odradek.security.quotas.rate import QuotaSensor

MOST = 50
LOOK_EVERY = 10
WINDOWS = Windows(11, 1000)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_sensors, "SENSORS_MAX", MOST)
    monkeypatch.setattr(kept_sensors, "LOOK_EVERY", LOOK_EVERY)


@pytest.fixture
def sensors() -> KeptSensors[int, QuotaSensor]:
    return KeptSensors()


def sensor() -> QuotaSensor:
    return QuotaSensor(1, *WINDOWS)


def test_what_was_not_used_for_an_hour_is_forgotten(sensors) -> None:
    forgotten = []
    sensors.on_forgotten = lambda: forgotten.append(len(sensors))
    for key in range(LOOK_EVERY - 1):
        sensors.keep(key, sensor(), key)
    sensors[0].record(1, INACTIVE_MS)
    sensors.keep(-1, sensor(), INACTIVE_MS + 5)
    assert [*sensors] == [0, 6, 7, 8, -1]
    assert forgotten == [4]


def test_beyond_the_bound_those_go_that_were_silent_for_longest(sensors) -> None:
    for key in range(MOST):
        sensors.keep(key, sensor(), key)
    for key in (0, 3):
        sensors[key].record(1, MOST)
    sensors.keep(-1, sensor(), MOST)
    assert [*sensors] == [0, 3, *range(LOOK_EVERY + 2, MOST), -1]


def test_client_ids_that_are_made_up_are_bounded_in_number() -> None:
    managers = QuotaManagers(WINDOWS, WINDOWS)
    every_client = ClientQuotaEntity.of({CLIENT_ID: None})
    quotas = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
    managers.set(every_client, dict.fromkeys((*quotas, "controller_mutation_rate"), 1.0))
    kinds = (managers.produce, managers.fetch, managers.request, managers.mutation)
    steady = [each.sensor_of("user", "steady", 0) for each in kinds]
    for number in range(5 * MOST):
        for manager, known in zip(kinds, steady, strict=True):
            known.record(0, number)
            manager.sensor_of("user", f"made up {number}", number)
            assert len(manager.sensors) <= MOST
    assert [each.sensor_of("user", "steady", 0) for each in kinds] == steady


def test_addresses_are_bounded_in_number() -> None:
    rates = ConnectionRates(WINDOWS)
    rates.set_ip_rates({None: 1.0})
    for number in range(5 * MOST):
        rates.admit_ip(f"10.0.{number // 256}.{number % 256}", number)
        assert len(rates.ips) <= MOST
