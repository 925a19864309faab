"""What runs beside the requests: retention, flushes, compaction, failed directories."""
