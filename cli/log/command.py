"""`odradek log`: look into the files of a data folder, verify them, repair them."""

from __future__ import annotations

import typer

from .dump import dump
from .repair import repair
from .verify import verify

app = typer.Typer(
    help="Look into the files of a data folder, verify and repair them; no broker is needed.",
)
app.command(name="dump")(dump)
app.command(name="verify")(verify)
app.command(name="repair")(repair)
