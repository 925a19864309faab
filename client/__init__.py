"""A small trio-native Kafka client, for the broker's own requests to other brokers.

It may not import storage, replication or broker: it is a client like any other.
"""
