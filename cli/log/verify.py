"""`odradek log verify`: whether everything in a data folder is as it was written."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

from ..common.show import JsonOutput, note
from ..declarations import Exit, Option
from .folders import (
    CLEAN,
    DAMAGED,
    UNREADABLE,
    Folders,
    existing,
    hold_locks,
    plural,
    progress,
    reports_unreadable,
)

if TYPE_CHECKING:
    from ...log_tools.verify.finding import Finding


def verify(
    folders: Folders,
    deep: Annotated[
        bool, Option("--deep", help="Decode every record too; several times slower.")
    ] = False,
    live: Annotated[
        bool, Option("--live", help="A broker is running: leave out what it is writing.")
    ] = False,
    json_output: JsonOutput = False,
) -> None:
    """Read whole data folders, and tell everything in them that is damaged.

    Checksums, offsets, records, index entries, aborted transactions, snapshots of producers,
    leader epochs and checkpoints are held against each other. Nothing is changed.

    ```
    odradek log verify data
    odradek log verify data/orders-0 --deep
    odradek log verify disk1 disk2 --json | jq -r .file
    ```

    Ends with 0 if all is well, 1 if something is damaged, 2 if something could not be read. What
    begins with "note" is worth knowing, but no damage.

    No broker may run on the folders meanwhile, and none can start. With --live one may; then a
    file that changes while it is read can look damaged, and only what is found twice counts.
    """
    from ...log_tools.verify.finding import FindingKind
    from ...log_tools.verify.log_verify import Verification, VerifyOptions

    paths = existing(folders)
    damages = unreadable = 0
    with ExitStack() as stack:
        stack.enter_context(reports_unreadable())
        if live:
            note("a broker may be writing: what changes while it is read can look damaged")
        else:
            hold_locks(paths, stack, exclusive=False, advice="or verify with --live")
        options = VerifyOptions(deep=deep, live=live)
        total_bytes = Verification(paths, options).total_bytes()
        advance, show = stack.enter_context(progress(total_bytes, "verifying"))
        verification = Verification(paths, options, on_bytes=advance)
        for finding in verification.findings():
            show(_as_json(finding) if json_output else _as_text(finding))
            damages += finding.is_damage
            unreadable += finding.kind is FindingKind.UNREADABLE
    note(
        f"{plural(verification.partitions_count, 'partition')} with "
        f"{plural(total_bytes, 'byte')} of logs verified: {plural(damages, 'finding')}"
    )
    if damages and not live:
        note("to see what can be done: odradek log repair --dry-run DIR")
    raise Exit(UNREADABLE if unreadable else DAMAGED if damages else CLEAN)


def _as_text(finding: Finding) -> str:
    where = [finding.path]
    if finding.offset is not None:
        where.append(f"offset {finding.offset}")
    if finding.position is not None:
        where.append(f"position {finding.position}")
    return f"{finding.kind}: {', '.join(where)}: {finding.message}"


def _as_json(finding: Finding) -> str:
    fields = {
        "kind": finding.kind,
        "damage": finding.is_damage,
        "file": finding.path,
        "offset": finding.offset,
        "position": finding.position,
        "message": finding.message,
    }
    return json.dumps(fields, ensure_ascii=False)
