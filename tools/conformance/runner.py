"""Plays scenarios to two brokers and compares what they said."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from ...protocol.api_keys import ApiKey
from ...protocol.messages import InitProducerIdRequest
from ...testing.comparison.differences import Difference, compare
from ...testing.comparison.normalisation import IdMapping
from .connection import ConnectionClosedError, Login
from .scenario import Scenario
from .talk import GROUP, TRANSACTION, Talk
from .transcript import Exchange, Transcript

CONNECTION = "(connection)"
EXCHANGES = "(exchanges)"
WHOLE_SCENARIO = "(scenario)"


class ScenarioRun(NamedTuple):
    """A scenario in one version."""

    scenario: Scenario
    version: int

    def __str__(self) -> str:
        api = self.scenario.api_key.name.lower()
        return f"{api} v{self.version}, {self.scenario.title}"


class AnswerDifference(NamedTuple):
    """A difference and the answer that it stands in."""

    run: ScenarioRun
    api_key: ApiKey
    version: int
    difference: Difference


class Result(NamedTuple):
    """What came of one run.

    Attributes:
        run: which one.
        answers: how many answers were compared.
        found: the differences.
        seconds: how long it took, with Kafka and with odradek.
    """

    run: ScenarioRun
    answers: int
    found: list[AnswerDifference]
    seconds: tuple[float, float]


def play_all(
    runs: Sequence[ScenarioRun],
    expected_at: str,
    actual_at: str,
    prefix: str = "",
    *,
    login: Login | None = None,
) -> list[Result]:
    """Play every run to both brokers, which work at the same time, and compare.

    Args:
        runs: in this order.
        expected_at: HOST:PORT of the broker that is compared with.
        actual_at: HOST:PORT of the broker that is looked at.
        prefix: of every name, where other runs have left topics and groups behind.
        login: of a super user, where the brokers require a login.

    Raises:
        ConnectionError: one of them could not be played to.
    """
    played: dict[str, list[Transcript]] = {}

    def play_to(address: str) -> None:
        warm_up(address, login)
        played[address] = [play(run, address, prefix, login) for run in runs]

    threads = [
        threading.Thread(target=play_to, args=(address,), daemon=True)
        for address in (expected_at, actual_at)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    missing = [address for address in (expected_at, actual_at) if address not in played]
    if missing:
        raise ConnectionError(f"the broker at {missing[0]} could not be played to")
    pairs = zip(runs, played[expected_at], played[actual_at], strict=True)
    return [compare_transcripts(*each) for each in pairs]


def warm_up(address: str, login: Login | None = None) -> None:
    """Have a broker make its internal topics and fetch its first block of producer ids."""
    with Talk(address, "warm-up", 0, Transcript(), login) as talk:
        talk.wait_for_coordinator("warm-up", GROUP)
        talk.wait_for_coordinator("warm-up", TRANSACTION)
        talk.settled(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000))


def play(
    run: ScenarioRun, address: str, prefix: str = "", login: Login | None = None
) -> Transcript:
    """Play a scenario to one broker: what was said, and why it ended early if it failed."""
    transcript = Transcript()
    began = time.monotonic()
    name = prefix + run.scenario.name(run.version)
    with Talk(address, name, run.version, transcript, login) as talk:
        try:
            run.scenario.script(talk)
        except ConnectionClosedError:
            pass  # noted; the other broker has to have closed it as well
        except Exception as error:
            transcript.failure = f"{type(error).__name__}: {error}"
    transcript.seconds = time.monotonic() - began
    return transcript


def compare_transcripts(run: ScenarioRun, expected: Transcript, actual: Transcript) -> Result:
    """What differs between what two brokers said in one run; a script that failed differs, too."""
    mapping = IdMapping()
    found: list[AnswerDifference] = []
    pairs = list(zip(expected.exchanges, actual.exchanges, strict=False))
    for before, after in pairs:
        for difference in _compare(before, after, mapping):
            found.append(AnswerDifference(run, before.api_key, before.version, difference))
    counts = len(expected.exchanges), len(actual.exchanges)
    if counts[0] != counts[1]:
        difference = Difference(EXCHANGES, *map(str, counts))
        found.append(AnswerDifference(run, run.scenario.api_key, run.version, difference))
    if expected.failure or actual.failure:
        difference = Difference(
            WHOLE_SCENARIO, expected.failure or "played", actual.failure or "played"
        )
        found.append(AnswerDifference(run, run.scenario.api_key, run.version, difference))
    return Result(run, len(pairs), found, (expected.seconds, actual.seconds))


def _compare(expected: Exchange, actual: Exchange, mapping: IdMapping) -> list[Difference]:
    if (expected.api_key, expected.version) != (actual.api_key, actual.version):
        return [Difference(EXCHANGES, _title(expected), _title(actual))]
    before, after = expected.answer, actual.answer
    if isinstance(before, str) or isinstance(after, str):
        texts = [each if isinstance(each, str) else "answered" for each in (before, after)]
        return [] if texts[0] == texts[1] else [Difference(CONNECTION, *texts)]
    return compare(expected.api_key, expected.version, before, after, mapping)


def _title(exchange: Exchange) -> str:
    return f"{exchange.api_key.name} v{exchange.version}"
