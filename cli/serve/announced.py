"""What `odradek serve` prints when it serves: the lines that whoever starts it waits for."""

from __future__ import annotations

METRICS_PREFIX = "metrics at "
READY_PREFIX = "odradek ready at "


def metrics_line(urls: str) -> str:
    """Where metrics are.

    Args:
        urls: with commas between them.
    """
    return f"{METRICS_PREFIX}{urls}"


def ready_line(addresses: str, folder: str, seconds: float) -> str:
    """The line that says that clients are answered.

    Args:
        addresses: that they connect to, with commas between them.
        folder: where topics are kept.
        seconds: since the process was started.
    """
    return f"{READY_PREFIX}{addresses}, data in {folder}, {seconds:.2f} s"


def ready_addresses(line: str) -> str | None:
    """The addresses in such a line; None: it is another."""
    if not line.startswith(READY_PREFIX):
        return None
    return line.removeprefix(READY_PREFIX).split(", ", 1)[0]


def metrics_urls(line: str) -> str | None:
    """The addresses in a line about metrics; None: it is another."""
    return line.removeprefix(METRICS_PREFIX) if line.startswith(METRICS_PREFIX) else None
