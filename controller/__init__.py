"""The controller: decides topics, partitions and leaders, and sends them to the brokers.

Decisions are plain functions of a state, one noun per file (`topic_names`, `assignment`,
`planning`, `leadership`, ...); `controller` is the async shell that reads and writes the
metadata store and sends what was decided. No socket and no log may enter here.
"""
