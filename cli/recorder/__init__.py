"""`odradek record` and `odradek replay`."""
