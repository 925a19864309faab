"""A share group on three brokers under a seeded scheduler: its locks and its states."""
