"""What a test writes of faults: sentences, and mistakes that are refused at once."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest

from odradek.common.errors import ErrorCode
from odradek.protocol.api_keys import ApiKey
from odradek.testing import faults
from odradek.testing.control.framing import from_wire, to_wire
from odradek.testing.faults.fault import ACTIONS, Fault, TriggerState, ordinal
from odradek.testing.faults.matcher import API_NAMES, parse_versions
from odradek.tools.docs.client_outcomes import FAULTS, FETCH_FAULTS, TRIGGERS


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (
            faults.lose_answer("Produce", topic="orders").once(),
            "handle Produce for topic 'orders', and close the connection in place of the answer; "
            "once",
        ),
        (
            faults.answer("OffsetCommit", "REBALANCE_IN_PROGRESS", group="billing").on(3),
            "answer OffsetCommit for group 'billing' with REBALANCE_IN_PROGRESS, and do nothing; "
            "on the 3rd time",
        ),
        (
            faults.delay(seconds=1.5, client_id="slow"),
            "hold any request of client 'slow' for 1.5 s before it is handled; until lifted",
        ),
        (
            faults.drop("Fetch", version="12+", topic="t", partition=2).every(11),
            "never handle nor answer Fetch v12+ for partition 2 of topic 't'; every 11th time",
        ),
        (
            faults.throttle("Fetch", bytes_per_second=10).with_probability(0.25, seed=7),
            "let Fetch pass at 10 bytes a second; with probability 0.25 (seed 7)",
        ),
        (
            faults.refuse_connections().times(2),
            "reset new connections as soon as they are made; 2 times",
        ),
        (
            faults.refuse_login(user="alice").once(),
            "refuse SaslAuthenticate of user 'alice' though the login is right, and close the "
            "connection; once",
        ),
        (
            faults.expire_session("Produce", user="alice"),
            "have the login expire with Produce of user 'alice', and close the connection; "
            "until lifted",
        ),
        (
            faults.disconnect("EndTxn", transactional_id="t1").after(1),
            "close the connection in place of handling EndTxn for transactional id 't1'; "
            "from the 2nd time on",
        ),
    ],
    ids=lambda value: value.action if isinstance(value, faults.Fault) else "",
)
def test_a_fault_prints_as_a_sentence(fault: faults.Fault, sentence: str) -> None:
    assert str(fault) == sentence


def test_every_action_has_a_sentence_that_tells_all_that_it_was_made_with() -> None:
    made = [row.make("orders") for row in (*FAULTS, *FETCH_FAULTS)]
    made += [faults.refuse_login(topic="orders"), faults.expire_session(topic="orders")]
    made += [faults.refuse_connections(), faults.corrupt_answer("Produce", topic="orders", seed=3)]
    assert {fault.action for fault in made} == set(ACTIONS)
    for fault in made[:-2]:
        assert "'orders'" in str(fault)


def test_a_fault_is_the_same_after_its_way_over_the_channel() -> None:
    for row in FAULTS:
        for trigger in TRIGGERS:
            fault = trigger.apply(row.make("orders"))
            assert from_wire(json.loads(json.dumps(to_wire(fault))), Fault) == fault


@pytest.mark.parametrize("given", [{}, {"action": "delay"}, ["delay"], 3], ids=str)
def test_what_is_no_fault_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match="Fault has 7 fields"):
        from_wire(given, Fault)


def test_a_fault_of_an_unknown_action_is_refused() -> None:
    with pytest.raises(ValueError, match="this is no fault: 'explode'"):
        faults.drop()._replace(action="explode").check()


def test_faults_are_values_and_methods_leave_them_as_they_were() -> None:
    fault = faults.drop("Produce")
    assert fault.once() == faults.drop("Produce").times(1)
    assert fault == faults.drop("Produce").until_lifted() == fault.once().until_lifted()


@pytest.mark.parametrize("name", ["Produce", "PRODUCE", "produce", "ProduceRequest", 0])
def test_an_api_may_be_named_in_several_ways(name: str | int) -> None:
    assert faults.drop(name) == faults.drop("Produce")


def test_every_api_has_kafkas_name() -> None:
    assert set(API_NAMES.values()) == set(ApiKey)
    assert {"Produce", "EndTxn", "LeaderAndIsr", "OffsetForLeaderEpoch"} <= set(API_NAMES)


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "not_leader_or_follower", 6])
def test_an_error_may_be_named_or_numbered(error: str | int) -> None:
    assert faults.answer("Produce", error).error == ErrorCode.NOT_LEADER_OR_FOLLOWER.name


@pytest.mark.parametrize(
    ("mistake", "sentence"),
    [
        (lambda: faults.drop("Prodcue"), "no API 'Prodcue': did you mean 'Produce'"),
        (lambda: faults.drop("OffsetComit"), "did you mean 'OffsetCommit'"),
        (lambda: faults.drop(999), "no API with the key 999"),
        (lambda: faults.drop(b"Produce"), "an API is named as Kafka names it"),
        (lambda: faults.answer("Produce", "NOT_LEADR"), "did you mean 'NOT_LEADER_OR_FOLLOWER'"),
        (
            lambda: faults.answer("Produce", "NOT_LEADER_FOR_PARTITION"),
            "did you mean 'NOT_LEADER_OR_FOLLOWER'",
        ),
        (lambda: faults.answer("Produce", 9999), "no error with the code 9999"),
        (lambda: faults.answer("Produce", "NONE"), "NONE is no error"),
        (lambda: faults.answer(None, "UNKNOWN_SERVER_ERROR"), "answered to one API"),
        (lambda: faults.drop("Produce", version="new"), "not 'new'"),
        (lambda: faults.drop("Produce", version="9-3"), "no version is in '9-3'"),
        (lambda: faults.drop("Produce", topic=""), "topic is a text that is not empty"),
        (lambda: faults.drop("Produce", client_id=7), "client_id is a text"),
        (lambda: faults.drop("Produce", partition=-1), "partition is a number from 0 on"),
        (lambda: faults.drop("Produce", partition="0"), "partition is a number from 0 on"),
        (lambda: faults.delay("Produce", -1), "seconds are a number from 0"),
        (lambda: faults.delay("Produce", "1"), "seconds are a number from 0"),
        (lambda: faults.throttle("Produce", 0), "bytes is a whole number from 1 on"),
        (lambda: faults.truncate_answer("Produce", size=-1), "bytes is a whole number from 0"),
        (lambda: faults.drop("Produce").on(0), "a whole number from 1 on, not 0"),
        (lambda: faults.drop("Produce").times(1.5), "a whole number from 1 on"),
        (lambda: faults.drop("Produce").with_probability(2), "between 0 and 1, not 2"),
    ],
)
def test_a_mistake_is_refused_at_once_with_a_sentence(
    mistake: Callable[[], object], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        mistake()


def test_a_wrong_keyword_is_refused_with_the_right_one() -> None:
    with pytest.raises(TypeError, match="does not look at 'topics', only at version, client_id,"):
        faults.drop("Produce", topics="orders")
    with pytest.raises(TypeError, match="did you mean 'group'"):
        faults.drop("OffsetCommit", group_id="g")


@pytest.mark.parametrize(
    ("text", "versions"),
    [("9", range(9, 10)), ("3-5", range(3, 6)), ("12+", range(12, 2**15)), ("0", range(1))],
)
def test_versions_are_one_or_several(text: str, versions: range) -> None:
    assert parse_versions(text) == versions


@pytest.mark.parametrize("row", TRIGGERS, ids=lambda row: row.name)
def test_a_trigger_fires_as_its_row_of_the_table_says(row: object) -> None:
    state = TriggerState(row.apply(faults.drop()).trigger)
    assert tuple(state.fires() for _ in row.struck) == row.struck


def test_chance_strikes_the_same_requests_for_the_same_seed() -> None:
    trigger = faults.drop().with_probability(0.3, seed=5).trigger
    one, other = TriggerState(trigger), TriggerState(trigger)
    struck = [one.fires() for _ in range(1000)]
    assert struck == [other.fires() for _ in range(1000)]
    assert 200 < sum(struck) < 400
    elsewhere = TriggerState(faults.drop().with_probability(0.3, seed=6).trigger)
    assert struck != [elsewhere.fires() for _ in range(1000)]


@pytest.mark.parametrize(("probability", "strikes"), [(0, 0), (1, 100)])
def test_chance_of_none_and_of_all(probability: float, strikes: int) -> None:
    state = TriggerState(faults.drop().with_probability(probability).trigger)
    assert sum(state.fires() for _ in range(100)) == strikes


def test_ordinals() -> None:
    numbers = random.Random(1).sample(range(1, 10_000), 50)
    for number in numbers:
        ending = ordinal(number).removeprefix(str(number))
        if number // 10 % 10 == 1:
            assert ending == "th"
        else:
            assert ending == {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
