"""Sending batches, idempotently."""
