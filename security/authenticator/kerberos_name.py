"""`sasl.kerberos.principal.to.local.rules`: from a Kerberos principal to the name of a user.

After Kafka's KerberosName, KerberosRule and KerberosShortNamer: the first rule that is for a
principal names its user. A rule that could never be applied without an error is refused when it is
read, where Kafka finds out at a login.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from ...common.java_regex import expand
from ...config.definition import ConfigError

SETTING: Final = "sasl.kerberos.principal.to.local.rules"

_NAME = re.compile(r"(?P<service>[^/@]*)(?:/(?P<host>[^/@]*))?@(?P<realm>[^/@]*)", re.DOTALL)
_RULE = re.compile(
    r"(?P<default>DEFAULT)"
    r"|RULE:\[(?P<count>\d{1,9}):(?P<format>[^\]]*)\]"
    r"(?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<pattern>[^/]*)/(?P<replacement>[^/]*)/(?P<repeat>g)?)?"
    r"/?(?P<case>[LU])?",
    re.ASCII,
)
_PARAMETER = re.compile(r"\$(\d*)", re.ASCII)
_REFERENCE = re.compile(r"\\(?:.|$)|\$(\d?)", re.ASCII | re.DOTALL)
_NOT_SIMPLE = re.compile(r"[/@]")


class KerberosNameError(Exception):
    """A principal that is malformed, or that no rule makes a user of."""


class KerberosName(NamedTuple):
    """A principal.

    Attributes:
        service: its first component, the user of most.
        host: its second one; None if it has one only.
        realm: None where the name has none.
    """

    service: str
    host: str | None = None
    realm: str | None = None

    def __str__(self) -> str:
        host = "" if self.host is None else f"/{self.host}"
        return f"{self.service}{host}" + ("" if self.realm is None else f"@{self.realm}")

    @classmethod
    def parse(cls, principal: str) -> KerberosName:
        """Read it.

        Raises:
            KerberosNameError: it has more than two components, or several realms.
        """
        found = _NAME.fullmatch(principal)
        if found is not None:
            return cls(found["service"], found["host"], found["realm"])
        if "@" in principal:
            raise KerberosNameError(f"Malformed Kerberos name: {principal}")
        return cls(principal)


class Rule(NamedTuple):
    """One rule; without a format it is DEFAULT, which is for all of one realm.

    Attributes:
        realm: that of DEFAULT.
        components: how many there are in the principals that it is for.
        format: in which `$0` is the realm, `$1` and `$2` are the components.
        match: of which the formatted name has to be; None: any is.
        pattern: what is replaced in it; None: nothing.
        replacement: by this.
        is_repeated: whether each match is replaced, and not the first alone.
        case: "L" makes the letters small, "U" large.
    """

    realm: str
    components: int = 0
    format: str | None = None
    match: re.Pattern[str] | None = None
    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    is_repeated: bool = False
    case: str = ""

    def apply(self, name: KerberosName) -> str | None:
        """The user's name; None where this rule is not for the principal.

        Raises:
            KerberosNameError: it makes a name of several components.
        """
        parts = [name.realm or "", name.service, *([] if name.host is None else [name.host])]
        if self.format is None:
            short = name.service if name.realm == self.realm else None
        else:
            short = (
                self._formatted(self.format, parts) if len(parts) - 1 == self.components else None
            )
        if short is None:
            return None
        if _NOT_SIMPLE.search(short):
            raise KerberosNameError(f"a rule of {SETTING} makes {short!r} of {name}: not simple")
        if self.case == "L":
            return short.lower()
        return short.upper() if self.case == "U" else short

    def _formatted(self, form: str, parts: Sequence[str]) -> str | None:
        base = _PARAMETER.sub(lambda found: parts[int(found[1])], form)
        if self.match is not None and self.match.fullmatch(base) is None:
            return None
        if self.pattern is None:
            return base
        times = 0 if self.is_repeated else 1
        return self.pattern.sub(partial(expand, self.replacement), base, count=times)


class KerberosShortNamer:
    """Names users.

    Args:
        rules: the texts of the setting.
        default_realm: of which DEFAULT is; empty if this machine has none.

    Raises:
        ConfigError: a rule cannot be used.
    """

    def __init__(self, rules: Sequence[str], default_realm: str) -> None:
        self._rules = [_rule(text, default_realm) for text in rules]

    def short_name(self, principal: str) -> str:
        """The user that a principal is.

        Raises:
            KerberosNameError: it is none.
        """
        name = KerberosName.parse(principal)
        if name.host is None and name.realm is None:
            return name.service
        for rule in self._rules:
            short = rule.apply(name)
            if short is not None:
                return short
        raise KerberosNameError(f"no rule of {SETTING} is for {name}")


def _rule(text: str, default_realm: str) -> Rule:
    found = _RULE.match(text)
    if found is None or found.end() < len(text):
        raise ConfigError(
            f"{SETTING} has {text!r}: a rule is DEFAULT, or RULE:[n:string](regex)s/from/to/ with "
            "a g behind it to replace each match, and /L or /U at its end for lower or upper case."
        )
    if found["default"]:
        return Rule(default_realm)
    count = int(found["count"])
    for parameter in _PARAMETER.findall(found["format"]):
        if not parameter or int(parameter) > count:
            raise ConfigError(
                f"{SETTING} has {text!r}, where ${parameter} stands for nothing: $0 is the realm, "
                f"and $1 to ${count} are the components."
            )
    pattern = _compiled(text, found["pattern"])
    replacement = found["replacement"] or ""
    if pattern is not None:
        _check_references(text, replacement, pattern.groups)
    return Rule(
        default_realm,
        count,
        found["format"],
        _compiled(text, found["match"]),
        pattern,
        replacement,
        found["repeat"] is not None,
        found["case"] or "",
    )


def _compiled(rule: str, pattern: str | None) -> re.Pattern[str] | None:
    try:
        return None if pattern is None else re.compile(pattern)
    except re.error as error:
        raise ConfigError(
            f"{SETTING} has {rule!r}, where {pattern!r} is not a regular expression: {error}."
        ) from None


def _check_references(rule: str, replacement: str, groups: int) -> None:
    """Raises ConfigError where Java's Matcher would find no such group."""
    for found in _REFERENCE.finditer(replacement):
        is_literal = len(found[0]) == 2 and found[0][0] == "\\"
        if not is_literal and (not found[1] or int(found[1]) > groups):
            raise ConfigError(
                f"{SETTING} has {rule!r}, where {found[0]} stands for no group of the pattern."
            )
