"""A fault: what happens to which requests, and when. It prints as a sentence.

>>> print(lose_answer("Produce", topic="orders").once())
handle Produce for topic 'orders', and close the connection in place of the answer; once
"""

from __future__ import annotations

from typing import NamedTuple

from .matcher import Match
from .triggers import (
    AFTER,
    ALWAYS,
    EVERY,
    ON,
    PROBABILITY,
    TIMES,
    Trigger,
    make_count,
    make_probability,
)

ACTIONS = {
    "answer": "answer {match} with {error}, and do nothing",
    "answer_after_applying": "handle {match}, and answer {error} all the same",
    "delay": "hold {match} for {seconds:g} s before it is handled",
    "delay_answer": "handle {match}, and hold the answer for {seconds:g} s",
    "drop": "never handle nor answer {match}",
    "drop_answer": "handle {match}, and never answer",
    "disconnect": "close the connection in place of handling {match}",
    "lose_answer": "handle {match}, and close the connection in place of the answer",
    "truncate_answer": "handle {match}, and close the connection after {size} bytes of the answer",
    "corrupt_answer": "turn over a bit of the answer to {match} (seed {seed})",
    "corrupt_byte": "turn over the highest bit of byte {size} of the answer to {match}",
    "corrupt_records": "turn over a bit of the records in the answer to {match} (seed {seed})",
    "throttle": "let {match} pass at {size} bytes a second",
    "half_open": "have the connection of {match} go dead: it is open, and nothing comes over it",
    "refuse_connections": "reset new connections as soon as they are made",
}
"""Every action, as the beginning of a fault's sentence."""


class Fault(NamedTuple):
    """What happens to which requests, and when. `odradek.testing.faults` makes them.

    Attributes:
        action: one of `ACTIONS`.
        match: which requests.
        trigger: which of those.
        error: Kafka's name of the error that is answered.
        seconds: how long something is held.
        size: bytes, bytes a second, or which byte.
        seed: of the random choice of which bit is turned over.
    """

    action: str
    match: Match
    trigger: Trigger = Trigger()
    error: str | None = None
    seconds: float = 0.0
    size: int = 0
    seed: int = 0

    def once(self) -> Fault:
        """Strike the first request that matches, and no more."""
        return self.times(1)

    def on(self, number: int) -> Fault:
        """Strike only the n-th request that matches; the first is 1."""
        return self._replace(trigger=Trigger(ON, make_count(number)))

    def times(self, number: int) -> Fault:
        """Strike the first n requests that match."""
        return self._replace(trigger=Trigger(TIMES, make_count(number)))

    def after(self, number: int) -> Fault:
        """Let n requests that match pass, and strike all that come then."""
        return self._replace(trigger=Trigger(AFTER, make_count(number)))

    def every(self, number: int) -> Fault:
        """Strike every n-th request that matches."""
        return self._replace(trigger=Trigger(EVERY, make_count(number)))

    def with_probability(self, probability: float, seed: int = 0) -> Fault:
        """Strike each request that matches with this probability.

        Args:
            probability: from 0 to 1.
            seed: the same seed strikes the same ones of the requests, counted from the first.
        """
        return self._replace(trigger=Trigger(PROBABILITY, make_probability(probability), seed))

    def until_lifted(self) -> Fault:
        """Strike every request that matches, until the fault is lifted; so it is without this."""
        return self._replace(trigger=Trigger(ALWAYS))

    def __str__(self) -> str:
        """The sentence."""
        what = ACTIONS[self.action].format(
            match=self.match,
            error=self.error,
            seconds=self.seconds,
            size=self.size,
            seed=self.seed,
        )
        return f"{what}; {self.trigger}"

    def __repr__(self) -> str:
        return f"<fault: {self}>"

    def check(self) -> None:
        """Raises ValueError: it was not made by `odradek.testing.faults`."""
        try:
            str(self)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"this is no fault: {error}") from None
