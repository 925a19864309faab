"""How far an archive is: kept in its table, by the commit that brought the records.

So there is nothing beside the table that can be lost, or be of another age than it: a table that is
rolled back, copied or restored is archived on from where it is.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from ...errors import SparkConnectorError
from ...kafka_source.cluster import Offsets
from ...kafka_source.stream_offsets import from_json, to_json

VERSION = 1


class ArchivePosition(NamedTuple):
    """What a commit of an archive says beside its records."""

    batch: str
    """Made up for each batch: tells whose commit it was."""
    offsets: Offsets
    """The first offset of each partition that is not archived, of all that ever were."""

    def to_text(self) -> str:
        """As it is kept."""
        return json.dumps(
            {"version": VERSION, "batch": self.batch, "offsets": to_json(self.offsets)},
            separators=(",", ":"),
        )

    @classmethod
    def from_text(cls, text: str, table: str) -> ArchivePosition:
        """As it was kept.

        Raises:
            SparkConnectorError: another version of odradek, or somebody else, has written it.
        """
        try:
            written = json.loads(text)
            version = written["version"]
            if version != VERSION:
                raise SparkConnectorError(
                    f"the last commit to {table} is by a version of odradek that keeps its"
                    f" position another way (version {version}; this one knows {VERSION}): archive"
                    " with that one, or a newer one"
                )
            return cls(str(written["batch"]), from_json(written["offsets"]))
        except (ValueError, TypeError, KeyError):
            raise SparkConnectorError(
                f"the last commit to {table} says that it is archived up to {text[:80]!r}, which"
                " is no position; roll the table back to the commit before"
            ) from None
