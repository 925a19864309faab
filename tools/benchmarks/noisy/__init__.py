"""Clients that take all they can get, and what others beside them notice of it."""
