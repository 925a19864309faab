"""What transactional producers are promised: all of a transaction is read, or nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum, auto

from .invariants import InvariantBroken
from .log_checker import Key


class Outcome(Enum):
    """What became of a transaction, as far as its producer knows."""

    UNKNOWN = auto()
    COMMITTED = auto()
    ABORTED = auto()


class TransactionChecker:
    """Watches over transactions.

    Args:
        is_lossy: whether records of a partition may be lost.
        gone: the values of a partition's records that may be deleted.
    """

    def __init__(
        self, is_lossy: Callable[[Key], bool], gone: Callable[[Key], Collection[bytes]]
    ) -> None:
        self._is_lossy = is_lossy
        self._gone = gone
        self._sent: dict[str, dict[Key, list[bytes]]] = {}
        self._outcomes: dict[str, Outcome] = {}

    @property
    def committed_count(self) -> int:
        """How many were committed for sure."""
        return sum(each is Outcome.COMMITTED for each in self._outcomes.values())

    def begin(self, transaction: str) -> None:
        """One begins."""
        self._sent[transaction] = {}
        self._outcomes[transaction] = Outcome.UNKNOWN

    def sent(self, transaction: str, key: Key, value: bytes) -> None:
        """A record is sent as part of it."""
        self._sent[transaction].setdefault(key, []).append(value)

    def ended(self, transaction: str, outcome: Outcome) -> None:
        """It is over, as far as its producer goes."""
        self._outcomes[transaction] = outcome

    def check(self, read: dict[Key, list[bytes]]) -> None:
        """Hold it against all that can be read committed. Raises InvariantBroken."""
        visible = {(key, value) for key, values in read.items() for value in values}
        gone = {key: self._gone(key) for key in read if not self._is_lossy(key)}
        for transaction, sent in self._sent.items():
            expected = [
                (key, value)
                for key, values in sent.items()
                if key in gone
                for value in values
                if value not in gone[key] or (key, value) in visible
            ]
            found = [each for each in expected if each in visible]
            outcome = self._outcomes[transaction]
            if outcome is Outcome.ABORTED and found:
                raise InvariantBroken(f"{transaction} was aborted, and {found} is read")
            if outcome is Outcome.COMMITTED and len(found) < len(expected):
                lost = [each for each in expected if each not in visible]
                raise InvariantBroken(f"{transaction} was committed, and {lost} is not read")
            if found and len(found) < len(expected):
                raise InvariantBroken(f"of {transaction} only {found} is read, not {expected}")
        for key, values in read.items():
            if len(values) != len(set(values)):
                raise InvariantBroken(f"{key[0].hex()}-{key[1]} is read twice in parts")
