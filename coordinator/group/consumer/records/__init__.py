"""The records of a consumer group in `__consumer_offsets`: written, read, replayed."""
