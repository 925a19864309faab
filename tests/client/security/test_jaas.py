"""JAAS entries as operators write them for Kafka."""

from __future__ import annotations

import pytest

from odradek.client.security.jaas import JaasError, parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f"{PLAIN} required;", {}),
        (
            f'{PLAIN} required username="admin" password="a secret" user_admin="a secret";',
            {"username": "admin", "password": "a secret", "user_admin": "a secret"},
        ),
        (f"{PLAIN}\n  REQUIRED\n  user_a='x;y=z'\n  user_b = plain-word ;\n", None),
        (f'{PLAIN} optional k="say \\"hi\\"\\n";', {"k": 'say "hi"\n'}),
        (f'{PLAIN} sufficient k=";" j="=" /* a comment */; // and another', {"k": ";", "j": "="}),
        (f'{PLAIN} requisite k="";', {"k": ""}),
    ],
)
def test_entries(text: str, options: dict[str, str] | None) -> None:
    entry = parse_jaas(text)
    expected = {"user_a": "x;y=z", "user_b": "plain-word"} if options is None else options
    assert (entry.module, dict(entry.options)) == (PLAIN, expected)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "names no login module"),
        (";", "names no login module"),
        (PLAIN, "no control flag"),
        (f'{PLAIN} username="x";', "no control flag"),
        (f"{PLAIN} required", "semicolon"),
        (f'{PLAIN} required password="hush"', "semicolon"),
        (f"{PLAIN} required password;", "after 0 options comes no further NAME=VALUE"),
        (f"{PLAIN} required password=;", "after 0 options"),
        (f'{PLAIN} required = "hush";', "after 0 options"),
        (f"{PLAIN} required username=x password=two hush;", "after 2 options"),
        (f'{PLAIN} required password="hush;', "quote"),
        (f"{PLAIN} required; {PLAIN} required;", "several login modules"),
    ],
)
def test_what_is_no_entry_is_refused_without_its_secrets(text: str, why: str) -> None:
    with pytest.raises(JaasError, match=why) as raised:
        parse_jaas(text)
    assert "hush" not in str(raised.value)


def test_an_entry_shows_no_values() -> None:
    assert "hush" not in repr(parse_jaas(f'{PLAIN} required password="hush";'))
