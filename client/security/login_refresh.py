"""`sasl.login.*`: when a token is renewed, and how its provider is asked.

After Kafka's ExpiringCredentialRefreshingLogin and Retry. Kafka renews in a thread; here whoever
logs in does, when the time has come, and takes the token that is there if that fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

RANGES: Final = {
    "sasl.login.refresh.window.factor": (0.5, 1.0),
    "sasl.login.refresh.window.jitter": (0.0, 0.25),
    "sasl.login.refresh.min.period.seconds": (0, 900),
    "sasl.login.refresh.buffer.seconds": (0, 3600),
    "sasl.login.connect.timeout.ms": (1, None),
    "sasl.login.read.timeout.ms": (1, None),
    "sasl.login.retry.backoff.ms": (0, None),
    "sasl.login.retry.backoff.max.ms": (0, None),
}
"""The least and the greatest value of each, in the order of `LoginRefresh`'s fields."""


class LoginRefresh(NamedTuple):
    """The settings, with Kafka's defaults.

    Attributes:
        window_factor: the part of a token's life after which it is renewed.
        window_jitter: up to so much is added to that, at random.
        min_period_seconds: not sooner than so long after the last time.
        buffer_seconds: so long before the end at the latest.
        connect_timeout_ms: for a connection to the provider. Without one Kafka waits for ever.
        read_timeout_ms: for the provider's answer. Likewise.
        retry_backoff_ms: the first pause after a failure; each is twice the one before.
        retry_backoff_max_ms: for how long it is tried in all.
    """

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_seconds: float = 60
    buffer_seconds: float = 300
    connect_timeout_ms: float = 10_000
    read_timeout_ms: float = 10_000
    retry_backoff_ms: float = 100
    retry_backoff_max_ms: float = 10_000

    @classmethod
    def of(cls, setting: Callable[[str], str | None]) -> LoginRefresh:
        """As settings have it. Raises ValueError: one is not a number, or out of its range."""
        fields = zip(RANGES.items(), cls._field_defaults.values(), strict=True)
        return cls._make(
            default if (text := setting(name)) is None else _number(name, text, *bounds)
            for (name, bounds), default in fields
        )

    def refresh_ms(self, now_ms: float, start_ms: float, end_ms: float, chance: float) -> float:
        """When a token is to be renewed that holds from `start_ms` to `end_ms`.

        Args:
            now_ms: the time, of the same clock.
            start_ms: when it was issued.
            end_ms: when it expires.
            chance: between 0 and 1; how much of the jitter is added.
        """
        part = self.window_factor + self.window_jitter * chance
        earliest = now_ms + 1000 * self.min_period_seconds
        latest = end_ms - 1000 * self.buffer_seconds
        if earliest > latest:  # it lives too briefly for either
            return now_ms + (end_ms - now_ms) * part
        return max(min(start_ms + (end_ms - start_ms) * part, latest), earliest)


def _number(name: str, text: str, least: float, greatest: float | None) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not (number >= least and (greatest is None or number <= greatest)):
        limit = f"at least {least}" if greatest is None else f"between {least} and {greatest}"
        raise ValueError(f"{name}={text} cannot be used: it must be a number, {limit}")
    return number
