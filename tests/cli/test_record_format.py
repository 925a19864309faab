"""Format strings: what `consume --format` writes, and (slow) that kcat writes the same bytes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import Any

import pytest

from odradek.cli.common.errors import CommandError
from odradek.cli.records.record_format import format_writer

from .conftest import Odradek

pytestmark = pytest.mark.clients

TIMESTAMP_MS = 1_370_088_000_000

FORMATS = [
    *(r"%t [%p] at %o: key %k, value %s, %T\n", r"%K %S|%h|\n", r"%R%s", r"\x41\x0a\t\r%%\n", "%s"),
    *(r"%o\n%o\n", r"\\ \q %k;", "%t %s", r"é %s ", r"\x4a2\n"),
]


@pytest.fixture
def filled(on_broker: Odradek, broker: Any, topic: str) -> str:
    """Keys, values and headers of each kind: text, bytes, empty, null, many."""
    on_broker("topics", "create", topic, "-p", 1, "-c", "retention.ms=-1")
    records: list[dict[str, Any]] = [
        {"key": "k", "value": "v", "headers": [("a", "1"), ("b", "two")]},
        {"key": None, "value_base64": "/wD+Cg==", "headers": []},
        {"key": "", "value": None, "headers": [("none", None), ("empty", "")]},
        {"key": "schlüssel", "value": "", "headers": []},
    ]
    lines = [
        {
            **each,
            "timestamp": TIMESTAMP_MS,
            "headers": [{"key": key, "value": value} for key, value in each["headers"]],
        }
        for each in records
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    on_broker("produce", topic, "--format", "json", stdin=text.encode())
    return topic


def shown(topic: str, bootstrap: str, text: str) -> bytes:
    command = [sys.executable, "-m", "odradek", "consume", topic, "-b", bootstrap]
    command += ["--from-beginning", "-e", "-f", text]
    return subprocess.run(command, capture_output=True, timeout=120, check=True).stdout


def test_tokens_stand_for_the_record(broker: Any, filled: str) -> None:
    text = r"%t[%p]@%o %T %K=%k %S=%s %h\x2e\n"
    assert shown(filled, broker.bootstrap, text).split(b".\n") == [
        b"%s[0]@0 %d 1=k 1=v a=1,b=two" % (filled.encode(), TIMESTAMP_MS),
        b"%s[0]@1 %d -1= 4=\xff\x00\xfe\n " % (filled.encode(), TIMESTAMP_MS),
        b"%s[0]@2 %d 0= -1= none=NULL,empty=" % (filled.encode(), TIMESTAMP_MS),
        b"%s[0]@3 %d 10=schl\xc3\xbcssel 0= " % (filled.encode(), TIMESTAMP_MS),
        b"",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("text", FORMATS)
def test_kcat_writes_the_same_bytes(broker: Any, filled: str, text: str) -> None:
    kcat = shutil.which("kcat")
    assert kcat is not None, "install it: .ci/need names what tests need"
    theirs = subprocess.run(
        [kcat, "-C", "-t", filled, "-b", broker.bootstrap, "-eq", "-o", "beginning", "-f", text],
        capture_output=True, timeout=120, check=True,
    )  # fmt: skip
    assert shown(filled, broker.bootstrap, text) == theirs.stdout


@pytest.mark.parametrize("text", ["%x", "%", "%t %z"])
def test_a_token_that_there_is_not_is_named(text: str) -> None:
    with pytest.raises(CommandError, match=r"the format has '%[xz]?'; it may have %s"):
        format_writer(text, None)


def test_a_format_that_is_none_is_named(on_broker: Odradek, filled: str) -> None:
    outcome = on_broker("consume", filled, "--format", "jsn", code=1)
    assert "there is no format 'jsn'; it is value, json, or a string" in outcome.err


def test_several_topics_and_expressions(on_broker: Odradek, topic: str) -> None:
    names = [f"{topic}-{letter}" for letter in "abc"]
    on_broker("topics", "create", *names)
    for name in names:
        on_broker("produce", name, stdin=name.encode() + b"\n")
    first, second, third = names
    read = ("--from-beginning", "-e", "-f", r"%t=%s\n")
    for words, expected in (
        ((first, third), (first, third)),
        ((f"^{topic}-[ab]$",), (first, second)),
        ((third, f"^{topic}-", third), names),
    ):
        for group in ((), ("--group", f"g-{topic}-{len(words)}-{len(expected)}")):
            lines = sorted(on_broker("consume", *words, *read, *group).lines)
            assert lines == [f"{name}={name}" for name in expected]
    assert "no topic's name matches '^none'" in on_broker("consume", "^none", code=1).err
    assert "'^(' is no regular expression" in on_broker("consume", "^(", code=1).err
