"""`odradek console`."""
