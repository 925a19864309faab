"""The tables are facts of Kafka's: held here to what its own definition tables say."""

from __future__ import annotations

import csv
from pathlib import Path

from odradek.config.definition import Definition, OneOf, Range, RangeOr, SomeOf
from odradek.config.documentation import TEXTS
from odradek.config.effects import IGNORED, NOT_YET
from odradek.config.tables.broker_table import BROKER_DEFINITIONS, SECTIONS
from odradek.config.tables.topic_table import BROKER_SYNONYMS, TOPIC_DEFINITIONS
from odradek.config.values import format_value

DATA = Path(__file__).parent / "data"
REQUIRED_BY_KRAFT = {"node.id": "-1", "process.roles": "", "controller.listener.names": ""}


def facts(file_name: str) -> dict[str, list[str]]:
    """The lines of a table of facts, by the setting's name."""
    text = (DATA / file_name).read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {row[0]: row for row in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)}


KAFKA_4_BROKER = facts("kafka-4.3.1-broker-configs.tsv")
KAFKA_3_BROKER = facts("kafka-3.9.1-only-broker-configs.tsv")
KAFKA_TOPIC = facts("kafka-4.3.1-topic-configs.tsv")


def check_against(definition: Definition, row: list[str]) -> None:
    name, kind, default, checked, importance, internal = row[:6]
    assert definition.type.name == kind, name
    if default != "required":
        own = format_value(definition.type, definition.default)
        assert ("null" if own is None else own) == default, name
    assert definition.importance.name == importance, name
    assert definition.internal == (internal == "true"), name
    assert definition.sensitive == (kind == "PASSWORD"), name
    assert as_kafka_says_it(definition) == expected_check(name, checked), name


def as_kafka_says_it(definition: Definition) -> str:
    """A numeric or enumerated rule in the words of Kafka's table; others are not compared."""
    check = definition.check
    if isinstance(check, Range):
        return f"[{check.low},...{'' if check.high is None else f',{check.high}'}]"
    if isinstance(check, RangeOr):
        return f"[{check.low},...,{check.high}] or {check.special}"
    if isinstance(check, OneOf | SomeOf):
        return f"[{', '.join(sorted(check.values))}]"
    return ""


def expected_check(name: str, checked: str) -> str:
    if name == "node.id":
        return "[-1,...]"
    if checked.endswith("]") and "..." not in checked:
        values = checked[checked.index("[") + 1 : -1]
        return f"[{', '.join(sorted(values.split(', ')))}]"
    return checked if checked.startswith("[") and "[partitionId]" not in checked else ""


def test_broker_settings_equal_kafkas():
    for name, row in KAFKA_4_BROKER.items():
        check_against(BROKER_DEFINITIONS[name], row)
        assert BROKER_DEFINITIONS[name].dynamic == (row[6] == "true"), name


def test_only_what_kraft_demands_has_a_default_of_our_own():
    demanded = {name for name, row in KAFKA_4_BROKER.items() if row[2] == "required"}
    assert demanded == set(REQUIRED_BY_KRAFT)
    for name, default in REQUIRED_BY_KRAFT.items():
        definition = BROKER_DEFINITIONS[name]
        assert format_value(definition.type, definition.default) == default


OUR_OWN = {"zookeeper.digest", "odradek.await.topic.creation"}
"""Kafka says the first in a JAAS file, and does not have the other."""


def test_settings_of_our_own_are_not_kafkas():
    assert not OUR_OWN & {*KAFKA_4_BROKER, *KAFKA_3_BROKER}


def test_settings_beyond_kafka_4_are_those_of_zookeeper_mode():
    older = set(BROKER_DEFINITIONS) - set(KAFKA_4_BROKER) - OUR_OWN
    assert {"zookeeper.connect", "leader.imbalance.per.broker.percentage"} <= older
    for name in older:
        check_against(BROKER_DEFINITIONS[name], KAFKA_3_BROKER[name])


def test_topic_table_is_kafkas_whole_table():
    assert set(TOPIC_DEFINITIONS) == set(KAFKA_TOPIC)
    for name, row in KAFKA_TOPIC.items():
        check_against(TOPIC_DEFINITIONS[name], row)


def test_topic_synonyms_are_those_kafka_describes():
    described = {name: row[6] for name, row in KAFKA_TOPIC.items() if row[6]}
    assert described.items() <= BROKER_SYNONYMS.items()
    # Where the broker's setting has no default in its finest unit, Kafka describes no synonym.
    assert set(BROKER_SYNONYMS) - set(described) == {
        "flush.ms",
        "retention.ms",
        "segment.jitter.ms",
        "segment.ms",
    }


def test_every_broker_synonym_has_the_type_of_its_topic_setting():
    for topic_name, broker_name in BROKER_SYNONYMS.items():
        assert TOPIC_DEFINITIONS[topic_name].type is BROKER_DEFINITIONS[broker_name].type


def test_no_setting_stands_in_two_sections():
    names = [definition.name for section in SECTIONS.values() for definition in section]
    assert len(names) == len(set(names))


def test_every_setting_is_explained():
    assert set(TEXTS["broker"]) == set(BROKER_DEFINITIONS)
    assert set(TEXTS["topic"]) == set(TOPIC_DEFINITIONS)
    for text in (*TEXTS["broker"].values(), *TEXTS["topic"].values()):
        assert text.endswith(".")
        assert "  " not in text


def test_effects_speak_of_settings_that_exist():
    assert {*BROKER_DEFINITIONS, *TOPIC_DEFINITIONS} >= IGNORED
    assert {*BROKER_DEFINITIONS, *TOPIC_DEFINITIONS} >= NOT_YET
    assert not IGNORED & NOT_YET
