"""A metadata store in one SQLite file, for brokers of one machine."""
