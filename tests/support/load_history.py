"""What a load did and saw, told by many threads to one checker."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from .replication_checker import ReplicationChecker, Token

SILENT_SECONDS_MAX = 90.0
"""Acknowledgements come again within this time after any fault."""

Mark = Mapping[tuple[str, int], int]
"""By sender and partition, the number of the record that was to be sent next at some moment."""


def value_of(token: Token, padding: int = 0) -> bytes:
    """The record of a token."""
    return b"%s:%d:" % (token.sender.encode(), token.number) + b"." * padding


def token_of(value: bytes | None) -> Token:
    """The token of a record."""
    assert value is not None
    sender, number, _ = value.split(b":", 2)
    return Token(sender.decode(), int(number))


class History:
    """The checker, for many threads, and for waiting until something is acknowledged.

    Attributes:
        checker: to be used alone only when all threads have ended.
        trouble: what ended a thread that should not have.
    """

    def __init__(self) -> None:
        self.checker = ReplicationChecker()
        self.trouble: list[BaseException] = []
        self._changed = threading.Condition()
        self._senders = 0
        self._next: dict[tuple[str, int], int] = {}
        self._acknowledged: dict[tuple[str, int], int] = {}

    def new_sender(self, client: str) -> str:
        """A name that no other sender has."""
        with self._changed:
            self._senders += 1
            return f"{client} {self._senders}"

    def send(self, sender: str, partition: int) -> Token:
        """A sender is about to send."""
        with self._changed:
            token = self.checker.sent(sender, partition)
            self._next[sender, partition] = token.number + 1
            return token

    def acknowledge(self, token: Token, partition: int, offset: int | None) -> None:
        """A record is acknowledged; None: nobody says where it is."""
        with self._changed:
            self.checker.acknowledged(token, partition, offset)
            key = token.sender, partition
            self._acknowledged[key] = max(token.number, self._acknowledged.get(key, -1))
            self._changed.notify_all()

    def refuse(self, token: Token, partition: int, reason: object) -> None:
        with self._changed:
            self.checker.refused(token, partition, str(reason))

    @contextmanager
    def telling(self) -> Iterator[ReplicationChecker]:
        """The checker, for one thread alone."""
        with self._changed:
            yield self.checker

    def has_violations(self) -> bool:
        """Whether anything was found yet."""
        with self._changed:
            return bool(self.checker.violations)

    def mark(self) -> dict[tuple[str, int], int]:
        """By sender and partition, the number of the record that will be sent next."""
        with self._changed:
            return dict(self._next)

    def wait_acknowledged(
        self,
        mark: Mapping[tuple[str, int], int],
        partitions: Collection[int],
        seconds: float = SILENT_SECONDS_MAX,
    ) -> list[tuple[str, int]]:
        """Wait until each sender got an acknowledgement from each partition after a mark.

        Returns:
            Senders and partitions of which that did not come true in time.
        """

        def missing() -> list[tuple[str, int]]:
            if self.trouble:
                raise self.trouble[0]
            return [
                key
                for key, number in mark.items()
                if key[1] in partitions and self._acknowledged.get(key, -1) < number
            ]

        with self._changed:
            self._changed.wait_for(lambda: not missing(), seconds)
            return missing()

    def trouble_within(self, seconds: float) -> None:
        """Let so much time pass, unless a thread ends in trouble, which is raised."""
        with self._changed:
            if self._changed.wait_for(lambda: bool(self.trouble), seconds):
                raise self.trouble[0]

    def fail(self, trouble: BaseException) -> None:
        with self._changed:
            self.trouble.append(trouble)
            self._changed.notify_all()
