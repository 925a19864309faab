"""`odradek configs`."""
