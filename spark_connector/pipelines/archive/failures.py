"""What Spark, a table format or a catalog fails with, as one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import SparkConnectorError
from ..progress import first_line

CAUSES_MAX = 20

KNOWN = (
    (
        "No space left on device",
        "there is no room left for its files; nothing of the batch is in the table: make room, and"
        " start the run again",
    ),
    (
        "Connection refused",
        "its catalog cannot be reached (connection refused): start it, or mend its uri",
    ),
)
"""Parts of messages, and what to do."""


@contextmanager
def failures_reported(title: str) -> Iterator[None]:
    """Make failures of Spark and of what runs in its JVM errors of ours.

    Args:
        title: of the table.

    Raises:
        SparkConnectorError: in their place.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise SparkConnectorError(f"{title}: {_sentence(error)}") from error


def _sentence(error: Exception) -> str:
    messages = [str(error), *_java_messages(error)]
    for part, sentence in KNOWN:
        if any(part in message for message in messages):
            return sentence
    own = f"{SparkConnectorError.__name__}: "
    for message in messages:
        if own in message:
            return first_line(RuntimeError(message))
    if len(messages) == 1:
        return first_line(error)
    # The first says that something failed, the last one why.
    return messages[-1].partition("\n")[0]


def _java_messages(error: Exception) -> list[str]:
    """What the exceptions in the JVM say, from the outermost to its first cause."""
    java: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    messages: list[str] = []
    while java is not None and len(messages) < CAUSES_MAX:
        text = java.getMessage()
        messages.append(str(text) if text else java.getClass().getSimpleName())
        java = java.getCause()
    return messages
