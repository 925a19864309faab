"""Whose a certificate is: to the letter what Java says, for rules and access lists compare text."""

import base64
import json
from pathlib import Path

import pytest

from odradek.config.definition import ConfigError
from odradek.security.tls.certificate import MalformedCertificate, certificate_names
from odradek.security.tls.principal_rules import map_name, parse_rules

DATA = Path(__file__).parent / "data"
NAMES = json.loads((DATA / "java_certificate_names.json").read_text(encoding="utf-8"))["cases"]
RULES = json.loads((DATA / "kafka_principal_rules.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", NAMES, ids=[case["name"] for case in NAMES])
def test_subject_is_said_as_java_says_it(case):
    der = base64.b64decode(case["certificate"])
    assert certificate_names(der).subject == case["name"]


@pytest.mark.parametrize("case", RULES["cases"], ids=[case["rules"] for case in RULES["cases"]])
def test_rules_map_as_in_kafka(case):
    if case["outcome"] == "invalid":
        with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules"):
            parse_rules(case["rules"])
        return
    expected = case["user"] if case["outcome"] == "mapped" else None
    assert map_name(parse_rules(case["rules"]), RULES["name"]) == expected


def test_certificate_cut_short_anywhere_is_malformed_and_nothing_else():
    der = base64.b64decode(NAMES[1]["certificate"])
    for size in range(300):
        with pytest.raises(MalformedCertificate):
            certificate_names(der[:size])


def test_certificate_with_any_changed_byte_is_read_or_malformed():
    der = base64.b64decode(NAMES[1]["certificate"])
    outcomes = set()
    for position in range(len(der)):
        for value in (0x00, 0x7F, 0x80, 0x84, 0xFF):
            changed = der[:position] + bytes([value]) + der[position + 1 :]
            try:
                certificate_names(changed)
            except MalformedCertificate:
                outcomes.add("malformed")
            else:
                outcomes.add("read")
    assert outcomes == {"malformed", "read"}
