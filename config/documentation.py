"""What each setting is for, in a sentence: the texts of `documentation.toml`.

Importing this module reads them; it is imported only to answer DescribeConfigs with
documentation and to write docs/configuration.md. Which settings have an effect is said in
`effects`.
"""

from __future__ import annotations

import tomllib
from importlib import resources

from .effects import NOT_YET_NOTE, effect_note

with (resources.files(__package__) / "documentation.toml").open("rb") as _file:
    TEXTS: dict[str, dict[str, str]] = tomllib.load(_file)
"""By the kind of setting, then by its name."""


def of_broker(name: str) -> str | None:
    """What a broker setting is for, and whether it has an effect here; None if it is unknown."""
    text = TEXTS["broker"].get(name) or TEXTS["dynamic_only"].get(name)
    return None if text is None else text + effect_note(name)


def of_topic(name: str) -> str | None:
    """What a topic setting is for; None if it is unknown."""
    text = TEXTS["topic"].get(name)
    return None if text is None else text + effect_note(name)


def of_group(name: str) -> str | None:
    """What a group's setting is for, and whether it has an effect here; None if it is unknown."""
    text = TEXTS["group"].get(name)
    return None if text is None else text + effect_note(f"group.{name}")


def of_client_metrics(name: str) -> str | None:
    """What a client metrics subscription's setting is for; None if it is unknown."""
    text = TEXTS["client_metrics"].get(name)
    return None if text is None else text + NOT_YET_NOTE
