"""`odradek log`: look into the files of a data folder, verify them, repair them."""

from __future__ import annotations

from ..declarations import CommandGroup
from .dump import dump
from .repair import repair
from .verify import verify

app = CommandGroup(
    help="Look into the files of a data folder, verify and repair them; no broker is needed.",
)
app.command("dump")(dump)
app.command("verify")(verify)
app.command("repair")(repair)
