"""`odradek bench`."""
