"""`odradek-store.properties`: which metadata store knows the logs of a log directory.

A broker writes it before it makes logs, so the store that it names has heard of every topic here.
`broker/store_comparison.py` says what a start does with it. Kafka ignores the file.
"""

from __future__ import annotations

import logging
import os.path

from ...common.named_tuple import NamedTuple
from ..file_names import STORE_REFERENCE_FILE
from ..io.files import Files

logger = logging.getLogger(__name__)

REFERENCE_VERSION = 0


class StoreReference(NamedTuple):
    """What the file says.

    Attributes:
        incarnation: the store's own id, which changes when it has lost what it knew.
        position: the highest creation id that the broker has seen in it.
        broker_ids: the brokers that the cluster had.
        directory_ids: the `directory.id` of every log directory of the broker.
        leader_epoch: the highest of any partition of the cluster; a log knows only those in which
            something was written.
        topics_version: the `child_version` of the topics' parent, as far as the broker has seen.
    """

    incarnation: str
    position: int
    broker_ids: frozenset[int] = frozenset()
    directory_ids: frozenset[str] = frozenset()
    leader_epoch: int = 0
    topics_version: int = 0


def read_store_reference(files: Files, directory: str) -> StoreReference | None:
    """The reference in a log directory; None where there is none, or a damaged one.

    Raises:
        OSError: the disk fails.
    """
    path = os.path.join(directory, STORE_REFERENCE_FILE)
    if not files.exists(path):
        return None
    text = files.read_bytes(path).decode("utf-8", "replace")
    fields = dict(line.partition("=")[::2] for line in text.splitlines())
    try:
        if int(fields["version"]) != REFERENCE_VERSION:
            raise ValueError(f"version {fields['version']}")
        return StoreReference(
            fields["incarnation"],
            int(fields["position"]),
            frozenset(map(int, filter(None, fields["brokers"].split(",")))),
            frozenset(filter(None, fields["directories"].split(","))),
            int(fields["leader.epoch"]),
            int(fields.get("topics.version", 0)),  # a reference of an earlier release has none
        )
    except (KeyError, ValueError) as error:
        logger.warning("ignoring %s, which is damaged: %r", path, error)
        return None


def write_store_reference(files: Files, directory: str, reference: StoreReference) -> None:
    """Replace the reference in a log directory.

    Raises:
        OSError: the disk fails.
    """
    text = (
        f"version={REFERENCE_VERSION}\nincarnation={reference.incarnation}\n"
        f"position={reference.position}\n"
        f"brokers={','.join(map(str, sorted(reference.broker_ids)))}\n"
        f"directories={','.join(sorted(reference.directory_ids))}\n"
        f"leader.epoch={reference.leader_epoch}\n"
        f"topics.version={reference.topics_version}\n"
    )
    files.write_atomically(os.path.join(directory, STORE_REFERENCE_FILE), text.encode("ascii"))
