"""The committed table: the most that each request may cost."""

from __future__ import annotations

import math
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from measuring import Cost, Measured

TABLE = Path(__file__).parent / "floor.toml"
MARGIN = 0.03
"""Of calls and bytecodes, which do not vary at all, so that a refactoring pays no toll; and of the
sizes of objects, which may differ a little between two builds of one Python."""
EXACT = frozenset({"system_calls"})
"""Columns in which nothing may be added at all."""
OF_EVERY_PYTHON = ("python_calls", "bytecodes", "system_calls")
"""Columns that hold for every version of Python: 3.12 and 3.13 call no more functions than 3.11 and
execute fewer bytecodes. Calls of C and the sizes of objects are each version's own."""
BLOCKS_STEP = 0.1

HEAD = """\
# The most that one request may cost, whatever the machine and whatever else it does. Measured by
# tests/floor/floor.py, which tells what each column is, and a margin of 3 % on top.
#
# Where test_floor.py fails, something was added to the way of a request. See what:
#     .venv/bin/python tests/floor/floor.py diff {example} HEAD
#     .venv/bin/python tests/floor/floor.py tree {example}
# Where a request has become cheaper, or is worth more than it was:
#     .venv/bin/python tests/floor/floor.py write

python = "{python}"

[at_most]
"""


def this_python() -> str:
    """The version of the interpreter, as far as bytecode depends on it."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def at_most() -> dict[str, dict[str, float]]:
    """Limits by case and column: those that hold for the Python that asks."""
    content = tomllib.loads(TABLE.read_text()) if TABLE.exists() else {"at_most": {}}
    columns = Cost._fields if content.get("python") == this_python() else OF_EVERY_PYTHON
    return {
        name: {column: row[column] for column in columns}
        for name, row in content["at_most"].items()
    }


def over(name: str, cost: Cost, limits: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """A sentence for each column in which a request costs more than the table says."""
    if name not in limits:
        yield f"{name} is not in {TABLE.name}"
        return
    for column, limit in limits[name].items():
        value = getattr(cost, column)
        if value > limit:
            yield (
                f"{column}: {value:g} per request, the table says {limit:g} at most "
                f"(+{(value - limit) / max(limit, 1):.1%})"
            )


def limit_of(column: str, value: float) -> float:
    """What is committed for a measured value."""
    if column in EXACT:
        return math.ceil(value)
    if column == "blocks_kept":
        return round(math.ceil(max(value, 0) / BLOCKS_STEP + 0.5) * BLOCKS_STEP, 1)
    return math.ceil(value * (1 + MARGIN))


def write_table(found: Mapping[str, Measured]) -> None:
    """Write the table anew."""
    lines = [HEAD.format(python=this_python(), example=next(iter(found)))]
    for name, measured in found.items():
        fields = ", ".join(
            f"{column} = {limit_of(column, value):g}"
            if column == "blocks_kept"
            else f"{column} = {limit_of(column, value)}"
            for column, value in zip(Cost._fields, measured.cost, strict=True)
        )
        lines.append(f"# {measured.says}\n{name} = {{ {fields} }}\n")
    TABLE.write_text("".join(lines))
