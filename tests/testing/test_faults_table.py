"""Every fault with every trigger, met by real clients: each cell of the table in the docs.

The trials run at once, each with a client and a topic of its own, since most of their time is
waiting. One that came out otherwise is tried again alone, by a client with more patience: on a busy
machine one may give up early.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.fault_clients import ASKERS, GIVE_UP_MS, PATIENT_MS
from support.fault_trials import FETCH_TRIALS, RETRY_TRIALS, SEND_TRIALS, Outcome, Trial

from odradek.testing import Broker
from odradek.tools.docs.client_outcomes import (
    ALL_CLIENTS,
    CONNECTION_FAULTS,
    FAULTS,
    FETCH_FAULTS,
    OK,
    ConnectionRow,
)

pytestmark = [pytest.mark.clients, pytest.mark.slow]

AT_ONCE = 64
TRIALS: list[Trial] = sorted(
    [*SEND_TRIALS, *RETRY_TRIALS, *FETCH_TRIALS], key=lambda trial: -trial.waits
)
"""Those that wait most often for an answer that does not come are begun first."""

Outcomes = dict[str, Outcome | Exception]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def outcomes(broker: Broker) -> Outcomes:
    """What came of all trials when they ran at once, by their names."""

    def run(trial: Trial) -> Outcome | Exception:
        try:
            return trial.run(broker)
        except Exception as error:  # it is tried again
            return error

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return dict(zip(map(name_of, TRIALS), threads.map(run, TRIALS), strict=True))


def name_of(trial: Trial) -> str:
    return f"{type(trial).__name__} {trial}"


@pytest.mark.parametrize("trial", [*SEND_TRIALS, *RETRY_TRIALS, *FETCH_TRIALS], ids=name_of)
def test_a_client_sees_of_a_fault_what_the_table_says(
    trial: Trial, broker: Broker, outcomes: Outcomes
) -> None:
    outcome = outcomes[name_of(trial)]
    if outcome != trial.expected():
        outcome = trial.run(broker, PATIENT_MS)
    assert outcome == trial.expected()


@pytest.mark.parametrize("client", ALL_CLIENTS)
@pytest.mark.parametrize("row", CONNECTION_FAULTS, ids=lambda row: row.name)
def test_a_client_that_is_refused_sees_what_the_table_says(
    row: ConnectionRow, client: str, broker: Broker, outcomes: Outcomes
) -> None:
    # Nobody else connects meanwhile: the other trials are over once there are outcomes.
    with broker.faults.during(row.fault) as fault:
        give_up_ms = PATIENT_MS if row.seen[client] == OK else GIVE_UP_MS
        assert ASKERS[client](broker.bootstrap_servers, give_up_ms) == row.seen[client]
        assert fault.strikes >= 1


def test_every_kind_of_fault_is_in_the_table() -> None:
    from odradek.testing import faults

    kinds = {name for name in faults.__all__ if name.islower()}
    in_table = {row.name.partition(",")[0].split()[0] for row in (*FAULTS, *FETCH_FAULTS)}
    of_logins = {"refuse_login", "expire_session"}  # what clients make of them: test_login_faults
    assert kinds == in_table | of_logins | {"refuse_connections"}
