"""What clusters cost: replication, failover, metadata."""
