"""`odradek transactions`."""
