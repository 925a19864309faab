"""The states of partitions and replicas, elections and reassignments."""
