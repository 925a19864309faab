"""Moves of a replica from one log directory to another (KIP-113)."""
