"""What groups and transactions cost."""
