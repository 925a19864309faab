"""The small files beside the logs: checkpoints, meta.properties, partition.metadata."""
