"""What a failing test's report shows of its brokers: their logs and the last requests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .control.client import ControlError

if TYPE_CHECKING:
    from .control.controlled_broker import ControlledBroker

LOG_LINES_SHOWN = 200
LOG_BYTES_READ = 1 << 20
"""How much of the end of a log is looked at for those lines."""
REQUEST_LINES_SHOWN = 50
ANSWER_SECONDS = 20.0
"""How long a broker is waited for that may be frozen."""

Section = tuple[str, str]
"""A heading and a text."""


class Watched(NamedTuple):
    """A broker of a test, and where its log and its list of requests stood as the test began.

    Attributes:
        name: what its sections are headed by.
        broker: the broker.
        log_path: its log.
        log_start: how many bytes that had.
        request_mark: the number of its latest request; None if it could not be asked.
    """

    name: str
    broker: ControlledBroker
    log_path: Path
    log_start: int
    request_mark: int | None


def watch(name: str, broker: ControlledBroker, log_path: Path | str) -> Watched:
    """Remember where a broker stands.

    Args:
        name: what its sections are headed by.
        broker: it runs.
        log_path: its log.
    """
    path = Path(log_path)
    try:
        mark = broker.control().call("requests.mark", answer_within=ANSWER_SECONDS)
    except ControlError:
        mark = None
    return Watched(name, broker, path, path.stat().st_size if path.exists() else 0, mark)


def sections_of(watched: Watched) -> list[Section]:
    """What a broker has been asked and has logged since it has been watched.

    Args:
        watched: the broker; it may be dead by now.
    """
    return [
        (f"last requests to {watched.name}", _requests(watched)),
        (f"log of {watched.name}", _log(watched)),
    ]


def _requests(watched: Watched) -> str:
    if watched.request_mark is None:
        return "(not known: its control channel did not answer as the test began)"
    try:
        lines = watched.broker.control().call(
            "requests.lines",
            answer_within=ANSWER_SECONDS,
            since=watched.request_mark,
            limit=REQUEST_LINES_SHOWN,
        )
    except ControlError as error:
        return f"(not known: {error})"
    return "\n".join(lines) or "(none)"


def _log(watched: Watched) -> str:
    if not watched.log_path.exists():
        return "(its log is gone)"
    with watched.log_path.open("rb") as log:
        end = log.seek(0, 2)
        log.seek(max(watched.log_start, end - LOG_BYTES_READ))
        lines = log.read().decode(errors="replace").splitlines()
    return "\n".join(lines[-LOG_LINES_SHOWN:]) or "(nothing logged)"
