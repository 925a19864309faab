"""`odradek tokens`: delegation tokens."""
