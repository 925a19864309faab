"""A fault: what happens to which requests, and when. It prints as a sentence.

>>> print(lose_answer("Produce", topic="orders").once())
handle Produce for topic 'orders', and close the connection in place of the answer; once
"""

from __future__ import annotations

import random
from typing import NamedTuple

from .matcher import Match

ALWAYS = "always"
ON = "on"
TIMES = "times"
AFTER = "after"
EVERY = "every"
PROBABILITY = "probability"


class Trigger(NamedTuple):
    """When a fault strikes.

    Attributes:
        kind: one of the kinds above.
        number: of requests, or the probability.
        seed: of the random choice.
    """

    kind: str = ALWAYS
    number: float = 0
    seed: int = 0

    def __str__(self) -> str:
        """As a part of a sentence."""
        count = int(self.number)
        if self.kind == ON:
            return f"on the {ordinal(count)} time"
        if self.kind == TIMES:
            return "once" if count == 1 else f"{count} times"
        if self.kind == AFTER:
            return f"from the {ordinal(count + 1)} time on"
        if self.kind == EVERY:
            return f"every {ordinal(count)} time"
        if self.kind == PROBABILITY:
            return f"with probability {self.number:g} (seed {self.seed})"
        return "until lifted"


class TriggerState:
    """A trigger on its way through the requests that a fault matches.

    Attributes:
        matches: how many there were.
    """

    def __init__(self, trigger: Trigger) -> None:
        self._trigger = trigger
        self._random = random.Random(trigger.seed)
        self.matches = 0

    def fires(self) -> bool:
        """Count one more request; returns whether the fault strikes it."""
        self.matches += 1
        kind, number = self._trigger.kind, self._trigger.number
        if kind == ON:
            return self.matches == number
        if kind == TIMES:
            return self.matches <= number
        if kind == AFTER:
            return self.matches > number
        if kind == EVERY:
            return self.matches % int(number) == 0
        if kind == PROBABILITY:
            return self._random.random() < number
        return True


def make_count(number: int, least: int = 1) -> int:
    """A number of requests.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        raise ValueError(f"a number of requests is a whole number from {least} on, not {number!r}")
    return number


def make_probability(probability: float) -> float:
    """A probability.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(probability, int | float) or not 0 <= probability <= 1:
        raise ValueError(f"a probability is between 0 and 1, not {probability!r}")
    return float(probability)


def ordinal(number: int) -> str:
    """ "1st", "2nd", "3rd", "11th"."""
    if number % 100 not in (11, 12, 13):
        ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10)
        if ending is not None:
            return f"{number}{ending}"
    return f"{number}th"


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
    "refuse_login": "refuse {match} though the login is right, and close the connection",
    "expire_session": "have the login expire with {match}, and close the connection",
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


class FaultStatus(NamedTuple):
    """A fault of a broker, as the broker knows it at one moment.

    Attributes:
        id: its number on this broker.
        owner: the text it was added with.
        matches: how many requests it was about, whether or not they were struck.
        strikes: how often it has struck.
        is_lifted: whether it is over.
    """

    id: int
    fault: Fault
    owner: str
    matches: int
    strikes: int
    is_lifted: bool
