"""`odradek groups`."""
