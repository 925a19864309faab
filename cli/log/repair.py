"""`odradek log repair`: torn tails are cut, side files made anew."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Annotated

from ..common.show import JsonOutput, note
from ..declarations import Exit, Option
from .folders import (
    CLEAN,
    DAMAGED,
    Folders,
    existing,
    hold_locks,
    plural,
    progress,
    reports_unreadable,
)


def repair(
    folders: Folders,
    dry_run: Annotated[
        bool, Option("--dry-run", "-n", help="Change nothing, only tell what would be done.")
    ] = False,
    json_output: JsonOutput = False,
) -> None:
    """Cut torn tails, and make damaged indexes and other side files anew.

    ```
    odradek log repair --dry-run data
    odradek log repair data && odradek log verify data
    ```

    Whole batches are never touched. A damaged one with whole ones behind it is reported and left
    where it is. What is cut is kept beside the log, in a file whose name ends in .cut; a
    checkpoint that cannot be read gets a name that ends in .damaged. The mark of a clean shutdown
    stays as it is, or absent: a broker that was killed will still look at its logs itself.

    The broker must be stopped. Ends with 0 if nothing is left to be done, 1 if something damaged
    was left alone, 2 if something could not be read or written.
    """
    from ...log_tools.repair.log_repair import Repair, RepairOptions
    from ...log_tools.repair.root_repair import RepairAction
    from ...log_tools.verify.log_verify import Verification, VerifyOptions
    from ...storage.io.files import REAL_FILES
    from ...storage.io.read_only_files import READ_ONLY_FILES

    paths = existing(folders)
    done = left = 0
    with ExitStack() as stack:
        stack.enter_context(reports_unreadable())
        advice = "a log cannot be repaired while it is written"
        hold_locks(paths, stack, exclusive=not dry_run, advice=advice)
        total_bytes = Verification(paths, VerifyOptions()).total_bytes()
        advance, show = stack.enter_context(progress(total_bytes, "repairing"))
        files = READ_ONLY_FILES if dry_run else REAL_FILES
        options = RepairOptions(dry_run=dry_run)
        for step in Repair(paths, options, files=files, on_bytes=advance).steps():
            if json_output:
                fields = {"action": step.action, "file": step.path, "message": step.message}
                show(json.dumps(fields, ensure_ascii=False))
            else:
                show(f"{step.action}: {step.path}: {step.message}")
            is_left = step.action is RepairAction.LEAVE
            left += is_left
            done += not is_left
    would = "would be repaired" if dry_run else "repaired"
    note(f"{plural(done, 'thing')} {would}, {plural(left, 'thing')} left alone")
    raise Exit(DAMAGED if left else CLEAN)
