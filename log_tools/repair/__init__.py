"""Torn tails cut, and side files rebuilt from the batches."""
