"""The folder of an archive in Parquet: whose turn it is, and which of its files count."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlparse

from ...errors import SparkConnectorError

LOG = "_spark_metadata"
LOG_VERSION = "v1"
TOPICS_FILE = "_topics.json"


class ArchiveFolder:
    """An archive on a local or mounted file system.

    Args:
        folder: of the lake.
        checkpoint: of its query.
    """

    def __init__(self, folder: Path, checkpoint: Path) -> None:
        self._folder = folder
        self._checkpoint = checkpoint

    @classmethod
    def at(cls, folder: str, checkpoint: str) -> ArchiveFolder | None:
        """The folder of a path or a `file:` URI; None where it lies in another store.

        There Spark keeps the log just so, but files of interrupted batches stay.
        """
        places = [local_path(each) for each in (folder, checkpoint)]
        lake, kept = places
        return None if lake is None or kept is None else cls(lake, kept)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only run that writes here; the system lets go when a process dies.

        Raises:
            SparkConnectorError: another is.
        """
        self._checkpoint.mkdir(parents=True, exist_ok=True)
        with (self._checkpoint / "archive.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise SparkConnectorError(
                    f"another run is archiving to {self._folder}; wait for it, or stop it"
                ) from None
            yield

    def note_partitions(self, counts: Mapping[str, int]) -> None:
        """Keep how many partitions the topics have: some may be empty."""
        path = self._folder / TOPICS_FILE
        known = noted_partitions(str(self._folder))
        merged = {
            topic: max(counts.get(topic, 0), known.get(topic, 0)) for topic in {*counts, *known}
        }
        self._folder.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(".new")
        scratch.write_text(json.dumps(merged, sort_keys=True) + "\n")
        scratch.replace(path)

    def require_consistent(self) -> None:
        """Checkpoint and files must be of the same archive.

        Spark skips each batch whose number the folder's log has already: with a checkpoint that
        begins anew, it would read records and drop them.

        Raises:
            SparkConnectorError: one of them is missing or behind.
        """
        logged = max(_batch_numbers(self._folder / LOG), default=-1)
        planned = max(_batch_numbers(self._checkpoint / "offsets"), default=-1)
        done = max(_batch_numbers(self._checkpoint / "commits"), default=-1)
        if logged > planned:
            raise SparkConnectorError(
                f"{self._folder} holds {logged + 1} batches, but its checkpoint"
                f" {self._checkpoint} knows of {planned + 1}; name the checkpoint that belongs to"
                " it, or archive to another folder"
            )
        if done > logged:
            raise SparkConnectorError(
                f"the checkpoint {self._checkpoint} has {done + 1} batches done, but"
                f" {self._folder} holds {logged + 1}; bring its files back, or remove the"
                " checkpoint to archive from the beginning"
            )

    def remove_uncommitted(self) -> int:
        """Remove the files that no batch has committed; how many there were.

        Only a run that holds the lock may: a batch in the making is not committed either.
        """
        if not (self._folder / LOG).is_dir():
            return 0
        committed = self.committed_files()
        removed = 0
        for path in self._folder.glob("topic=*/date=*/part-*.parquet"):
            if path.name not in committed:
                path.unlink()
                path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
                removed += 1
        return removed

    def committed_files(self) -> set[str]:
        """The names (they are unique) of all files in the log.

        Raises:
            SparkConnectorError: the log is not one that this version can read.
        """
        names = set()
        for path in sorted((self._folder / LOG).iterdir()):
            if path.name.startswith(".") or not path.name.removesuffix(".compact").isdigit():
                continue
            version, *lines = path.read_text().splitlines() or [""]
            if version != LOG_VERSION:
                raise SparkConnectorError(f"{path} is a log of version {version!r}, not v1")
            for line in lines:
                names.add(unquote(urlparse(json.loads(line)["path"]).path).rpartition("/")[2])
        return names


def local_path(place: str) -> Path | None:
    """The path of a path or a `file:` URI; None of any other URI."""
    parsed = urlparse(place)
    if "://" not in place and parsed.scheme != "file":
        return Path(place)
    return Path(unquote(parsed.path)) if parsed.scheme == "file" else None


def noted_partitions(folder: str) -> dict[str, int]:
    """How many partitions the topics of an archive have; nothing where that was not noted.

    Raises:
        SparkConnectorError: the note cannot be read.
    """
    path = local_path(folder)
    if path is None or not (path / TOPICS_FILE).is_file():
        return {}
    try:
        noted = json.loads((path / TOPICS_FILE).read_text())
        return {str(topic): int(count) for topic, count in noted.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise SparkConnectorError(f"{path / TOPICS_FILE} cannot be read: {error}") from None


def _batch_numbers(folder: Path) -> Iterator[int]:
    if folder.is_dir():
        for path in folder.iterdir():
            number = path.name.removesuffix(".compact")
            if number.isdigit():
                yield int(number)
