"""`odradek cluster`."""
