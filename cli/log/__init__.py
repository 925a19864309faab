"""`odradek log`."""
