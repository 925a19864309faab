"""Kafka's `sasl.jaas.config`: a login module, a flag and options, in the syntax of JAAS files.

    org.apache.kafka.common.security.plain.PlainLoginModule required
        username="broker" password="secret" user_alice="wonderland";

Kafka reads it with Java's StreamTokenizer (`org.apache.kafka.common.security.JaasConfig`): words,
texts in single or double quotes with backslashes, and comments are as there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ...protocol.sasl.gssapi import MECHANISM as GSSAPI
from ...protocol.sasl.oauthbearer import MECHANISM as OAUTHBEARER
from ...protocol.sasl.plain import MECHANISM as PLAIN
from ...protocol.sasl.scram import SCRAM_MECHANISMS

LOGIN_MODULES: Final = {
    PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
    OAUTHBEARER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    GSSAPI: "com.sun.security.auth.module.Krb5LoginModule",
    **dict.fromkeys(SCRAM_MECHANISMS, "org.apache.kafka.common.security.scram.ScramLoginModule"),
}
"""The login module that the entry of a mechanism names."""

FLAGS = ("REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}
_TOKEN = re.compile(
    r"""
    (?P<space>\s+ | //[^\n]* | /\*.*?\*/ )
    | "(?P<double>(?:[^"\\\n]|\\.)*)"
    | '(?P<single>(?:[^'\\\n]|\\.)*)'
    | (?P<sign>[=;])
    | (?P<word>[^\s=;"'/]+)
    """,
    re.VERBOSE | re.DOTALL,
)


class JaasError(Exception):
    """A JAAS entry that cannot be used; the text repeats nothing of it.

    Any word may be of a password: one with a space, and without quotes, looks like two options.
    """


class JaasEntry(NamedTuple):
    """One login module.

    Attributes:
        module: its Java class.
        options: name to value.
    """

    module: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"JaasEntry({self.module!r}, [{', '.join(self.options)}])"


def parse_jaas(text: str) -> JaasEntry:
    """Read the one entry that a setting has.

    Raises:
        JaasError: it is not one entry of that form.
    """
    tokens = _tokens(text)
    module = next(tokens, END)
    if module.is_sign:
        raise JaasError("it names no login module: expected CLASS required NAME=VALUE ... ;")
    if next(tokens, END).text.upper() not in FLAGS:
        raise JaasError(
            "after the login module comes no control flag; it is one of "
            f"{', '.join(each.lower() for each in FLAGS)}"
        )
    options: dict[str, str] = {}
    for name in tokens:
        if name == END:
            break
        is_equal = next(tokens, END) == EQUAL
        value = next(tokens, END)
        if name.is_sign or not is_equal or value.is_sign:
            raise JaasError(
                f"after {len(options)} options comes no further NAME=VALUE; a value with spaces or "
                "signs stands in quotes"
            )
        options[name.text] = value.text
    else:
        raise JaasError("it does not end with a semicolon")
    if next(tokens, None) is not None:
        raise JaasError("it holds several login modules: a setting takes one")
    return JaasEntry(module.text, options)


def format_jaas(module: str, options: Mapping[str, str]) -> str:
    """The text of an entry, as a setting has it; `parse_jaas` reads it."""
    texts = [f'{name}="{_escaped(value)}"' for name, value in options.items()]
    return " ".join([module, "required", *texts]) + ";"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class _Token(NamedTuple):
    """A word, a text that stood in quotes, or a sign."""

    text: str
    is_sign: bool = False


END = _Token(";", is_sign=True)
EQUAL = _Token("=", is_sign=True)


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise JaasError(f"character {position + 1} is not expected: is a quote not closed?")
        position = found.end()
        quoted = found["double"] if found["double"] is not None else found["single"]
        if quoted is not None:
            yield _Token(re.sub(r"\\(.)", _unescape, quoted, flags=re.DOTALL))
        elif found["sign"] or found["word"]:
            yield _Token(found["sign"] or found["word"], bool(found["sign"]))


def _unescape(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[1], found[1])
