"""`odradek spark`: pipelines between topics and a lake, audits, comparisons, on Spark."""

from __future__ import annotations

from ..declarations import CommandGroup
from .audit import audit
from .copies import archive, mirror, replay
from .maintain import maintain
from .replicas import verify_replicas

app = CommandGroup(
    help="Archive, replay, mirror and audit topics, compare replicas; they may be any Kafka's.",
)
app.command("audit")(audit)
app.command("archive")(archive)
app.command("replay")(replay)
app.command("mirror")(mirror)
app.command("maintain")(maintain)
app.command("verify-replicas")(verify_replicas)
