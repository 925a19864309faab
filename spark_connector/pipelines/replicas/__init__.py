"""Whether all replicas of a stopped cluster are the same."""
