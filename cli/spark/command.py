"""`odradek spark`: pipelines between topics and a lake, audits, comparisons, on Spark."""

from __future__ import annotations

import typer

from .audit import audit
from .copies import archive, mirror, replay
from .maintain import maintain
from .replicas import verify_replicas

app = typer.Typer(
    help="Archive, replay, mirror and audit topics, compare replicas; they may be any Kafka's.",
)
app.command(name="audit")(audit)
app.command(name="archive")(archive)
app.command(name="replay")(replay)
app.command(name="mirror")(mirror)
app.command(name="maintain")(maintain)
app.command(name="verify-replicas")(verify_replicas)
