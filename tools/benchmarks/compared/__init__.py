"""Brokers of three makes, what is asked of them, and what came of it."""
