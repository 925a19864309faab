"""Reading partitions for a fetch, and finding offsets."""
