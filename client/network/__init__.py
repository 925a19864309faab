"""Connections to brokers: opened, kept, throttled, chosen among."""
