"""The error of all checkers, and what brokers write into their logs."""

from __future__ import annotations

import logging

from ....common.errors import KafkaError


class InvariantBroken(AssertionError):
    """What must always hold did not."""


class LoggedViolations(logging.Handler):
    """Exceptions that a broker would live with, and only write into its log: none may happen.

    Attributes:
        seen: one line for each.
        expected: kinds of exceptions that a fault has brought about.
    """

    def __init__(self, *expected: type[BaseException]) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []
        self.expected: tuple[type[BaseException], ...] = (KafkaError, *expected)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep those that are no refusals."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, self.expected):
            self.seen.append(f"{record.getMessage()}: {error!r}")
