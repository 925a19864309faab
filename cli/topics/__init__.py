"""`odradek topics`."""
