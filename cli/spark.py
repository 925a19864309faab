"""`odradek spark`: pipelines between topics and a lake, and audits, on Spark."""

from __future__ import annotations

import typer

from .spark_audit import audit
from .spark_copies import archive, mirror, replay

app = typer.Typer(
    help="Archive, replay, mirror and audit topics with Spark; they may be any Kafka's.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
app.command(name="audit")(audit)
app.command(name="archive")(archive)
app.command(name="replay")(replay)
app.command(name="mirror")(mirror)
