"""Brokers of three makes, their loads, and the results."""
