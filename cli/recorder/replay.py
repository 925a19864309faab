"""`odradek replay`: a capture said again to another broker, and where its answers differ."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

from ...common.escaping import escaped_json
from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, check_addresses
from ..common.show import JsonOutput, note
from ..declarations import Argument, Exit, Option
from ..log.folders import plural

if TYPE_CHECKING:
    from ...testing.recorder.replay import Mismatch

SAME, DIFFERENT, NOT_REPLAYED = 0, 1, 2


def replay(
    capture: Annotated[Path, Argument(metavar="CAPTURE", help="What odradek record --out wrote.")],
    speed: Annotated[
        float,
        Option(
            "--speed",
            min=0,
            metavar="FACTOR",
            help="1: in the time that it took then; 2: twice as fast; 0: without pauses.",
        ),
    ] = 0.0,
    answer_timeout: Annotated[
        float,
        Option(
            "--answer-timeout",
            min=0,
            metavar="SECONDS",
            help="How much longer than then an answer may take.",
        ),
    ] = 10.0,
    every: Annotated[
        bool, Option("--every", help="Tell each difference, also those like an earlier one.")
    ] = False,
    json_output: JsonOutput = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
) -> None:
    """Send what was recorded to another broker, and tell each field that it answers otherwise.

    ```
    odradek record --upstream kafka:9092 --out run.capture
    odradek replay run.capture --bootstrap-server localhost:9092
    odradek replay run.capture --speed 1 --json | jq .path
    ```

    The broker should be as empty as the other was when the recording began. Each request is sent
    once all answers are there that came before it then; so a group's rebalance and a long poll are
    as they were. Ids, epochs and generations that the broker gives take the place of those that
    were recorded, in answers and in what is sent later. Recorded connections to several brokers
    lead to those with the same ids.

    Of differences of one field in the same two values the first is shown, unless --every is given.
    Ends with 0 if all answers are the same, 1 if some differ, 2 if the capture cannot be read or
    the broker cannot be reached.
    Passwords are not in captures: what needs a login cannot be replayed.
    """
    from ...testing.recorder.addresses import Address
    from ...testing.recorder.capture_file import CaptureError, CaptureReader
    from ...testing.recorder.replay import ReplayError
    from ...testing.recorder.replay import replay as run

    bootstrap = Address.parse(check_addresses(bootstrap_server)[0])
    reader = CaptureReader(capture)

    counts: Counter[tuple[str, ...]] = Counter()

    def show(mismatch: Mismatch) -> None:
        counts[mismatch.kind] += 1
        if every or json_output or counts[mismatch.kind] == 1:
            print(_as_json(mismatch) if json_output else _as_text(mismatch), flush=True)

    try:
        reader.check()
        outcome = run(reader, bootstrap, show, speed=speed, answer_seconds_max=answer_timeout)
    except (CaptureError, ReplayError) as error:
        _not_replayed(str(error))
    except OSError as error:
        _not_replayed(f"{capture}: {error.strerror}")
    if reader.torn_at is not None:
        note(
            f"{capture} breaks off at byte {reader.torn_at:,}, within an entry: its recorder was"
            " ended by force; everything before was replayed"
        )
    for what, count in outcome.passed_over.items():
        note(f"not replayed: {what} ({count:,} times)")
    note(
        f"replayed {plural(outcome.requests_count, 'request')},"
        f" compared {plural(outcome.compared_count, 'answer')}:"
        f" {plural(outcome.mismatches_count, 'difference')}"
    )
    if len(counts) < outcome.mismatches_count:
        note(f"{len(counts):,} of them are distinct; to see each: --every")
    raise Exit(DIFFERENT if outcome.mismatches_count else SAME)


def _not_replayed(why: str) -> NoReturn:
    """Leave the command with an error that differs from that of differing answers."""
    note(f"odradek: error: {why}")
    raise Exit(NOT_REPLAYED) from None


def _as_text(mismatch: Mismatch) -> str:
    from ...testing.recorder.message_text import printable
    from ...testing.recorder.screen import time_text

    path = f" {mismatch.path}" if mismatch.path else ""
    return (
        f"{time_text(mismatch.time_ns)} {mismatch.connection} {mismatch.request}{path}:"
        f" {printable(mismatch.expected)} recorded, {printable(mismatch.actual)} answered"
    )


def _as_json(mismatch: Mismatch) -> str:
    return escaped_json(json.dumps(mismatch._asdict(), ensure_ascii=False))
