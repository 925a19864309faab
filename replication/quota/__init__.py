"""Bounds on the bytes a second that replication may take (KIP-73)."""
