"""Topics: created, grown, deleted."""
