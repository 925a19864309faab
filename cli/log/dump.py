"""`odradek log dump`: what is in the files of a data folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ...common.sentinels import INT64_MAX
from ..common.errors import fail
from ..common.show import JsonOutput
from ..declarations import Argument, Exit, Option
from .lines import to_json, to_text

if TYPE_CHECKING:
    from ...log_tools.dump.log_dump import DumpOptions

Paths = Annotated[
    list[Path],
    Argument(
        metavar="PATH",
        help="A file of a log, a partition's folder, or a data folder.",
        show_default=False,
    ),
]


def dump(
    paths: Paths,
    records: Annotated[
        bool, Option("--records", "-r", help="Also the records of each batch.")
    ] = False,
    everything: Annotated[
        bool, Option("--all", "-a", help="Of folders, also indexes and other side files.")
    ] = False,
    verify: Annotated[
        bool,
        Option("--verify", help="Also hold offsets, records and index entries to the log."),
    ] = False,
    offsets: Annotated[
        bool, Option("--offsets", help="Decode the records of __consumer_offsets.")
    ] = False,
    transactions: Annotated[
        bool, Option("--transactions", help="Decode the records of __transaction_state.")
    ] = False,
    from_offset: Annotated[
        int, Option("--from-offset", min=0, metavar="N", help="Begin at this offset.")
    ] = 0,
    to_offset: Annotated[
        int | None, Option("--to-offset", min=0, metavar="N", help="End with this offset.")
    ] = None,
    max_records: Annotated[
        int | None,
        Option("--max-records", "-n", min=1, help="Stop after so many; implies --records."),
    ] = None,
    json_output: JsonOutput = False,
) -> None:
    """Show what is in the files of a log, a line for each batch, record or entry.

    ```
    odradek log dump data/orders-0
    odradek log dump data/orders-0 --records --from-offset 4200 -n 10
    odradek log dump data/orders-0/00000000000000000000.index --verify
    odradek log dump data/__consumer_offsets-12 --offsets --json | jq .decoded
    odradek log dump data --all
    ```

    Of a folder the logs are shown; --all adds indexes, transaction indexes, snapshots of
    producers, leader epochs, checkpoints and metadata, each of which can also be named itself.
    Lines that begin with "damage" tell what is wrong; what lies behind it is shown all the same,
    and the exit code is 1. Reading a log that a broker is writing is harmless.
    """
    from ...log_tools.dump.log_dump import DumpOptions

    options = DumpOptions(
        records=records or offsets or transactions or max_records is not None,
        verify=verify,
        decoder="offsets" if offsets else "transactions" if transactions else None,
        from_offset=from_offset,
        to_offset=INT64_MAX if to_offset is None else to_offset,
    )
    files = [file for path in paths for file in _files_of(path, everything, options)]
    is_damaged = _show(files, options, max_records, json_output=json_output)
    raise Exit(1 if is_damaged else 0)


def _show(
    files: list[str], options: DumpOptions, max_records: int | None, *, json_output: bool
) -> bool:
    """Print the entries of all files; whether any tells of damage."""
    from ...log_tools.dump.log_dump import dump_file

    is_damaged = False
    left = max_records
    for path in files:
        if not json_output:
            print(f"== {path} ({os.path.getsize(path):,} bytes)")
        try:
            for kind, fields in dump_file(path, options):
                print(to_json(kind, fields, path) if json_output else to_text(kind, fields))
                is_damaged = is_damaged or kind == "damage"
                if left is not None and kind == "record":
                    left -= 1
                    if left == 0:
                        return is_damaged
        except ValueError as error:
            fail(str(error))
    return is_damaged


def _files_of(path: Path, everything: bool, options: DumpOptions) -> Iterator[str]:
    """The files to be shown of what the user named."""
    from ...log_tools.dump.log_dump import files_of_data_folder, files_of_partition
    from ...log_tools.verify.data_folder import is_partition_folder
    from ...storage.io.read_only_files import READ_ONLY_FILES

    if not path.is_dir():
        yield str(path)
    elif is_partition_folder(READ_ONLY_FILES, str(path)):
        yield from files_of_partition(str(path), options, side_files=everything)
    else:
        found = list(files_of_data_folder(str(path), options, side_files=everything))
        if not found:
            fail(f"{path} holds no logs; a data folder has folders such as orders-0")
        yield from found
