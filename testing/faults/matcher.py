"""Which requests a fault strikes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any, NamedTuple

from ...protocol.api_keys import ApiKey

API_NAMES: dict[str, ApiKey] = {
    "".join(word.capitalize() for word in key.name.split("_")): key for key in ApiKey
}
"""Every API by Kafka's name for it, such as "Produce"."""

_VERSIONS = re.compile(r"(\d{1,5})(?:(\+)|-(\d{1,5}))?")
VERSION_MAX = 2**15 - 1


class Match(NamedTuple):
    """Which requests; what is None is not looked at.

    Attributes:
        api: Kafka's name of the API.
        version: of the API: "9", "3-9" or "12+".
        client_id: as the request's header has it.
        user: who is logged in, by name; a principal such as "User:alice", too.
        topic: named in the request.
        partition: named in the request; with `topic`, of that topic.
        group: named in the request.
        transactional_id: named in the request.
    """

    api: str | None = None
    version: str | None = None
    client_id: str | None = None
    user: str | None = None
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None

    @property
    def api_key(self) -> ApiKey | None:
        """The API's number; None: any."""
        return None if self.api is None else API_NAMES[self.api]

    @property
    def version_range(self) -> range | None:
        """The versions; None: any."""
        return None if self.version is None else parse_versions(self.version)

    @property
    def names_something(self) -> bool:
        """Whether it looks at what the request names."""
        return any(
            name is not None
            for name in (self.topic, self.partition, self.group, self.transactional_id)
        )

    @property
    def is_narrow(self) -> bool:
        """Whether it is about certain topics, groups, clients, users or producers only."""
        return any((self.client_id, self.user, self.topic, self.group, self.transactional_id))

    def __str__(self) -> str:
        """As a part of a sentence: "Produce to topic orders"."""
        words = [self.api or "any request"]
        if self.version is not None:
            words.append(f"v{self.version}")
        if self.client_id is not None:
            words.append(f"of client {self.client_id!r}")
        if self.user is not None:
            words.append(f"of user {self.user!r}")
        if self.partition is not None:
            words.append(f"for partition {self.partition}")
        if self.topic is not None:
            words.append(f"{'for' if self.partition is None else 'of'} topic {self.topic!r}")
        if self.group is not None:
            words.append(f"for group {self.group!r}")
        if self.transactional_id is not None:
            words.append(f"for transactional id {self.transactional_id!r}")
        return " ".join(words)


LOOKED_AT = Match._fields[1:]
TEXTS = ("client_id", "user", "topic", "group", "transactional_id")


def make_match(api: str | int | None, **which: Any) -> Match:
    """A match of what a user wrote.

    Args:
        api: the API's name or number; None: any.
        which: the other fields of `Match`, by name; a version may be a number.

    Raises:
        ValueError: something is not as Kafka has it; the sentence says what, and what would do.
        TypeError: there is nothing of such a name to look at.
    """
    for name in which:
        if name not in LOOKED_AT:
            raise TypeError(
                f"a fault does not look at {name!r}, only at {', '.join(LOOKED_AT)}: did you mean "
                f"{nearest(name, LOOKED_AT)!r}?"
            )
    for name in TEXTS:
        text = which.get(name)
        if text is not None and not (isinstance(text, str) and text):
            raise ValueError(f"{name} is a text that is not empty, not {text!r}")
    partition, version = which.get("partition"), which.get("version")
    if partition is not None and (
        not isinstance(partition, int) or isinstance(partition, bool) or partition < 0
    ):
        raise ValueError(f"partition is a number from 0 on, not {partition!r}")
    if version is not None:
        version = str(version)
        parse_versions(version)
    return Match(None if api is None else api_name(api), **{**which, "version": version})


def api_name(api: str | int) -> str:
    """Kafka's name of an API that is given by its name or number.

    Raises:
        ValueError: there is none; the sentence names the nearest.
    """
    if isinstance(api, int):
        for name, key in API_NAMES.items():
            if key == api:
                return name
        raise ValueError(f"there is no API with the key {api}")
    if not isinstance(api, str):
        raise ValueError(f"an API is named as Kafka names it, such as 'Produce', not {api!r}")
    name = _plain(api)
    plain = {_plain(known): known for known in API_NAMES}
    if name in plain:
        return plain[name]
    raise ValueError(f"there is no API {api!r}: did you mean {plain[nearest(name, plain)]!r}?")


def nearest(wrong: str, names: Iterable[str]) -> str:
    """The name that a wrong one is most like; a common beginning counts most."""

    def likeness(name: str) -> float:
        pairs = zip(wrong, name, strict=False)
        beginning = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        return beginning / max(len(wrong), 1) + SequenceMatcher(None, wrong, name).ratio()

    return max(names, key=likeness)


def _plain(name: str) -> str:
    return name.replace("_", "").lower().removesuffix("request")


def parse_versions(text: str) -> range:
    """ "9", "3-9" or "12+" as a range.

    Raises:
        ValueError: it is none of these.
    """
    found = _VERSIONS.fullmatch(text)
    if found is None:
        raise ValueError(f"a version is written as 9, '3-9' or '12+', not {text!r}")
    first = int(found[1])
    last = VERSION_MAX if found[2] else int(found[3] or first)
    if last < first:
        raise ValueError(f"no version is in {text!r}: {last} is less than {first}")
    return range(first, last + 1)
