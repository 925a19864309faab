"""One partition's log: appended to, validated, read, flushed, cut (Kafka's UnifiedLog)."""
