"""Compaction: what is cleaned next, how, and how fast (Kafka's LogCleaner)."""
