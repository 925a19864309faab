"""README.md names every command, and every command of `odradek spark`."""

from __future__ import annotations

import re

from support.documented import ROOT

from odradek.cli.commands import COMMANDS
from odradek.cli.spark.command import app as spark

TABLE = (ROOT / "README.md").read_text().partition("## The command line")[2].partition("\n## ")[0]


def test_the_table_has_every_command() -> None:
    assert set(re.findall(r"^\| `odradek (\w+)` \|", TABLE, re.MULTILINE)) == {"serve", *COMMANDS}


def test_the_row_of_spark_names_all_of_its_commands() -> None:
    commands = set(spark.commands)
    (row,) = re.findall(r"^\| `odradek spark` \|.*$", TABLE, re.MULTILINE)
    assert commands - set(re.findall(r"`([\w-]+)`", row)) == set()
