"""What idempotent producers are promised: each record once, and in the order of its producer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .invariants import InvariantBroken
from .log_checker import Entry, Key


class SequenceChecker:
    """Watches over what producers send.

    Args:
        is_lossy: whether records of a partition may be lost.
    """

    def __init__(self, is_lossy: Callable[[Key], bool]) -> None:
        self.is_lossy = is_lossy
        self._sent: dict[Key, dict[bytes, tuple[str, int]]] = {}
        self._acknowledged: dict[Key, dict[bytes, None]] = {}

    def sent(self, key: Key, producer: str, values: Sequence[bytes]) -> None:
        """A producer, under one id, sends records to a partition for the first time."""
        sent = self._sent.setdefault(key, {})
        for value in values:
            sent[value] = (producer, len(sent))

    def acknowledged(self, key: Key, values: Sequence[bytes]) -> None:
        """They are there, as all in-sync replicas say."""
        self._acknowledged.setdefault(key, {}).update(dict.fromkeys(values))

    def check(self, key: Key, name: object, committed: Sequence[Entry]) -> None:
        """Hold what is committed against it. Raises InvariantBroken."""
        sent = self._sent.get(key, {})
        found: dict[bytes, int] = {}
        last: dict[str, int] = {}
        for offset, entry in enumerate(committed):
            if entry.value not in sent:
                continue
            if entry.value in found:
                raise InvariantBroken(
                    f"{name} has {entry.value!r} at {found[entry.value]} and at {offset}"
                )
            found[entry.value] = offset
            producer, number = sent[entry.value]
            if number < last.get(producer, -1):
                raise InvariantBroken(f"{name} has {entry.value!r} at {offset}, out of its order")
            last[producer] = number
        for value in self._acknowledged.get(key, {}):
            if value not in found:
                raise InvariantBroken(f"{name} has lost {value!r}, which was acknowledged")
