"""Brokers that replicate under a seeded scheduler."""
