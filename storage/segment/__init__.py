"""Segments: a file of batches with its indexes, and a log's segments in order."""
