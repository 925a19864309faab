"""Whose a Kerberos principal is: what Kafka's own KerberosShortNamer has said, case by case."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odradek.config.definition import ConfigError
from odradek.security.authenticator.kerberos_name import (
    SETTING,
    KerberosName,
    KerberosNameError,
    KerberosShortNamer,
)

DATA = Path(__file__).parents[1] / "data"
RULES = json.loads((DATA / "kafka_kerberos_rules.json").read_text(encoding="utf-8"))
REFUSED_EARLIER = {
    "RULE:[1:$1]s/b/$1/": "stands for no group",
    "RULE:[1:$2]": r"\$2 stands for nothing",
    "RULE:[1:$]": r"\$ stands for nothing",
    "RULE:[1:$x]": r"\$ stands for nothing",
}
"""Rules that let nobody in with Kafka, either, which takes them."""


def namer(rules: str) -> KerberosShortNamer:
    return KerberosShortNamer(rules.split(","), RULES["default_realm"])


@pytest.mark.parametrize(
    "case", RULES["cases"], ids=[f"{case['rules']} {case['principal']}" for case in RULES["cases"]]
)
def test_rules_map_as_in_kafka(case: dict[str, str]) -> None:
    rules, principal = case["rules"], case["principal"]
    if case["outcome"] == "invalid" or rules in REFUSED_EARLIER:
        assert case["outcome"] != "mapped"
        with pytest.raises(ConfigError, match=f"{SETTING} has .*{REFUSED_EARLIER.get(rules, '')}"):
            namer(rules)
    elif case["outcome"] == "refused":
        with pytest.raises(KerberosNameError):
            namer(rules).short_name(principal)
    else:
        assert namer(rules).short_name(principal) == case["user"]


def test_parts_of_a_name() -> None:
    name = KerberosName.parse("kafka/broker.example.com@EXAMPLE.COM")
    assert name == ("kafka", "broker.example.com", "EXAMPLE.COM")
    assert str(name) == "kafka/broker.example.com@EXAMPLE.COM"
    assert KerberosName.parse("alice@EXAMPLE.COM") == ("alice", None, "EXAMPLE.COM")
    assert KerberosName.parse("alice") == ("alice", None, None)


def test_who_no_rule_is_for_is_nobody() -> None:
    with pytest.raises(KerberosNameError, match=f"no rule of {SETTING} is for bob@OTHER.COM"):
        namer("DEFAULT").short_name("bob@OTHER.COM")
