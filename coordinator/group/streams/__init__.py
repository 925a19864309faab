"""Streams groups of KIP-1071: the instances of a Kafka Streams application share its tasks.

`streams_groups.py` holds the verbs; a heartbeat goes through `heartbeat.py` (what it says and may
say), `configured_topology.py` (which partitions and internal topics the topology comes to), the
task assignor in `task_assignor.py` and `reconciliation.py` (what one member may have now). A group
is one immutable image, `group.py`, which every change replaces; `records.py` is how
`__consumer_offsets` keeps it, and `states.py` has the tables of its states.
"""
