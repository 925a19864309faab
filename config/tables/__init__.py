"""Every setting of brokers, topics and groups as data."""
