"""How fast connections are accepted: in all, by listener and by address (KIP-402, KIP-612).

After Kafka's ConnectionQuotas: above the broker's rate, or a listener's, that listener accepts
nothing for a while; a connection from an address above its rate is closed, but not at once, so that
its client does not come again at once.
"""

from __future__ import annotations

from collections.abc import Mapping

from .kept_sensors import KeptSensors
from .quota_managers import Windows
from .rate import QuotaSensor, ThrottleTimes

BROKER = ""
"""Stands for the broker among listeners."""


class ConnectionRates:
    """Measures accepted connections.

    Args:
        windows: for how long is measured; no throttle time is longer than one of them.

    Attributes:
        by_ip: the rate of an address; None: of those that have none of their own.
        listeners: measures each listener, and the broker (`BROKER`).
        ips: measures each address that has a rate.
        listener_throttles: of all listeners and the broker.
        ip_throttles: of all addresses, also of those that are forgotten.
    """

    def __init__(self, windows: Windows) -> None:
        self.by_ip: Mapping[str | None, float] = {}
        self.listeners: dict[str, QuotaSensor] = {}
        self.ips: KeptSensors[str, QuotaSensor] = KeptSensors()
        self.listener_throttles = ThrottleTimes()
        self.ip_throttles = ThrottleTimes()
        self._windows = windows

    def set_ip_rates(self, rates: Mapping[str | None, float]) -> None:
        """These are the rates of addresses now."""
        self.by_ip = rates
        for ip, sensor in list(self.ips.items()):
            rate = self._rate_of(ip)
            if rate is None:
                del self.ips[ip]
            else:
                sensor.bound = rate

    def admit_ip(self, ip: str, now_ms: int) -> int:
        """Count a connection from an address; returns after how many ms it is to be closed
        unserved, or 0. One that is not served does not count."""
        rate = self._rate_of(ip)
        if rate is None:
            return 0
        sensor = self.ips.get(ip)
        if sensor is None:
            sensor = self._sensor(rate, self.ip_throttles)
            self.ips.keep(ip, sensor, now_ms)
        throttle_ms = sensor.record(1, now_ms)
        if throttle_ms:
            sensor.note_throttled(throttle_ms)
            sensor.unrecord(1)
        return throttle_ms

    def record(self, listener_name: str, rate: float, now_ms: int) -> int:
        """Count a connection of a listener; returns for how many ms it accepts no more.

        Args:
            listener_name: whose; `BROKER` for the broker.
            rate: how many a second there may be.
            now_ms: monotonic time.
        """
        sensor = self.listeners.get(listener_name)
        if sensor is None:
            sensor = self.listeners[listener_name] = self._sensor(rate, self.listener_throttles)
        elif sensor.bound != rate:
            sensor.bound = rate
        throttle_ms = sensor.record(1, now_ms)
        if throttle_ms:
            sensor.note_throttled(throttle_ms)
        return throttle_ms

    def _rate_of(self, ip: str) -> float | None:
        return self.by_ip.get(ip, self.by_ip.get(None))

    def _sensor(self, rate: float, of_all: ThrottleTimes) -> QuotaSensor:
        return QuotaSensor(rate, *self._windows, self._windows.length_ms, of_all)
