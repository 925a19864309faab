"""The metadata store: a tree of versioned nodes that all brokers of a cluster share.

It knows sessions, ephemeral nodes, watches and transactions, as ZooKeeper does, and holds
Kafka's own paths and JSON. The package knows nothing of what the controller decides.
"""
