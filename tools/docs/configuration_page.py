"""Writes docs/configuration.md from the tables: `python -m odradek.tools.docs.configuration_page`.

The page goes to standard output; `make docs` puts it in place, and a test holds it current.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ...config.definition import Definition
from ...config.documentation import of_broker, of_client_metrics, of_group, of_topic
from ...config.dynamic.dynamic_rules import DYNAMIC_ONLY, PER_BROKER
from ...config.tables.broker_table import SECTIONS
from ...config.tables.group_table import (
    CLIENT_METRICS_DEFINITIONS,
    GROUP_DEFINITIONS,
    GROUP_SYNONYMS,
)
from ...config.tables.topic_table import BROKER_SYNONYMS, TOPIC_DEFINITIONS
from ...config.values import format_value

CONFIGURATION_PAGE_HEAD = """\
# Configuration

<!-- Written by `make docs` from broker/config: change the tables there, not this page. -->

Names, types, defaults and rules are Apache Kafka 4.3's, with those of 3.9's ZooKeeper mode. A
broker reads them from a file (`odradek serve --config server.properties`) and from the command
line (`-o num.partitions=4`), which wins; `DescribeConfigs` tells them to clients. A key that no
table here has is warned about in a file and refused on the command line.

`listener.name.<listener>.<key>` sets a key for one listener only. Of settings in several units
the finest that is given counts: `log.retention.ms`, then `.minutes`, then `.hours`.

**D** marks what can change while a broker runs, by `kafka-configs.sh` or any client that sends
AlterConfigs or IncrementalAlterConfigs: for one broker or for all of them, and where **B** stands
for one broker only. What is changed so is kept in the metadata store and counts before file and
command line. Secrets can be changed by who has set `password.encoder.secret`.
"""

DYNAMIC_ONLY_HEAD = """\
## Settings that no file has

They are only changed while a broker runs.
"""

GROUPS_HEAD = """\
## Group settings

Of a single group, changed while brokers run. What a group does not set follows the broker's
setting in the third column.
"""

CLIENT_METRICS_HEAD = """\
## Client metrics settings

Of a client metrics subscription, changed while brokers run.
"""

TOPICS_HEAD = """\
## Topic settings

What a topic does not set follows the broker's setting in the third column.
"""


def configuration_page() -> str:
    """The whole page as Markdown."""
    parts = [CONFIGURATION_PAGE_HEAD]
    for title, definitions in SECTIONS.items():
        parts.append(f"## {title}\n")
        parts.append(_table(PLAIN_COLUMNS, _rows(definitions)))
    parts.append(DYNAMIC_ONLY_HEAD)
    parts.append(_table(PLAIN_COLUMNS, _rows(DYNAMIC_ONLY.values())))
    parts.append(TOPICS_HEAD)
    parts.append(_table(FOLLOWING, _following(TOPIC_DEFINITIONS, BROKER_SYNONYMS, of_topic)))
    parts.append(GROUPS_HEAD)
    parts.append(_table(FOLLOWING, _following(GROUP_DEFINITIONS, GROUP_SYNONYMS, of_group)))
    parts.append(CLIENT_METRICS_HEAD)
    subscription = CLIENT_METRICS_DEFINITIONS.values()
    parts.append(_table(PLAIN_COLUMNS, [_row(one, of_client_metrics) for one in subscription]))
    return "\n".join(parts)


PLAIN_COLUMNS = ("Setting", "Type", "Default", "What for")
FOLLOWING = ("Setting", "Type", "Follows", "Default", "What for")


def _following(
    definitions: Mapping[str, Definition],
    synonyms: Mapping[str, str],
    explain: Callable[[str], str | None],
) -> list[tuple[str, ...]]:
    return [
        _row(definition, explain, f"`{synonyms[name]}`" if name in synonyms else "")
        for name, definition in definitions.items()
    ]


def _rows(definitions: Iterable[Definition]) -> list[tuple[str, ...]]:
    return [_row(definition, of_broker) for definition in definitions]


def _row(
    definition: Definition, explain: Callable[[str], str | None], *follows: str
) -> tuple[str, ...]:
    name = f"`{definition.name}`"
    if definition.dynamic:
        name += " **D**" + (" **B**" if definition.name in PER_BROKER else "")
    kind = definition.type.name.lower()
    if definition.check is not None:
        kind += f", {definition.check.rule}"
    return (name, kind, *follows, _default(definition), explain(definition.name) or "")


def _default(definition: Definition) -> str:
    text = format_value(definition.type, definition.default)
    if text is None:
        return "unset"
    if text == "":
        return "empty"
    return LARGEST.get(text, f"`{text}`")


LARGEST = {
    str(2**31 - 1): "unlimited (2^31 - 1)",
    str(2**63 - 1): "unlimited (2^63 - 1)",
}


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


if __name__ == "__main__":
    print(configuration_page(), end="")
