"""`ssl.principal.mapping.rules`: from a certificate's name to the name of a user.

After Kafka's SslPrincipalMapper: the first rule whose pattern is the whole name counts.
"""

from __future__ import annotations

import re
from functools import partial
from typing import NamedTuple

from ...common.java_regex import expand
from ...config.definition import ConfigError

SETTING = "ssl.principal.mapping.rules"

_RULE = re.compile(
    r"\s*(?:(?P<default>DEFAULT)"
    r"|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?)"
    r")\s*(?:,\s*|$)",
    re.DOTALL,
)


class Rule(NamedTuple):
    """One rule; without a pattern it is DEFAULT, which takes the name as it is."""

    pattern: re.Pattern[str] | None
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        """The user's name; None where this rule is not for it."""
        pattern = self.pattern
        if pattern is None:
            return name
        if pattern.fullmatch(name) is None:
            return None
        # Each match within it, as Java's replaceAll: `.*` matches the empty end, too.
        mapped = pattern.sub(partial(expand, self.replacement), name)
        if self.case == "L":
            return mapped.lower()
        return mapped.upper() if self.case == "U" else mapped


def parse_rules(text: str) -> tuple[Rule, ...]:
    """Read the setting.

    Raises:
        ConfigError: a rule is none, or its pattern is no regular expression.
    """
    rules = []
    position = 0
    text = text.strip()
    while position < len(text):
        found = _RULE.match(text, position)
        if found is None:
            raise ConfigError(
                f"{SETTING} has {text[position:]!r}: a rule is DEFAULT, or "
                "RULE:pattern/replacement/ with an L or a U at its end for lower or upper case."
            )
        rules.append(_rule(found))
        position = found.end()
    return tuple(rules)


def _rule(found: re.Match[str]) -> Rule:
    if found["default"]:
        return Rule(None, "", "")
    try:
        pattern = re.compile(found["pattern"])
    except re.error as error:
        raise ConfigError(
            f"{SETTING} has the pattern {found['pattern']!r}, which is no regular expression: "
            f"{error}."
        ) from None
    return Rule(pattern, found["replacement"], found["case"])


def map_name(rules: tuple[Rule, ...], name: str) -> str | None:
    """The user's name for a certificate's; None where no rule is for it."""
    for rule in rules:
        mapped = rule.apply(name)
        if mapped is not None:
            return mapped
    return None
