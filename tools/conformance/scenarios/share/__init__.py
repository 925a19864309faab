"""The scenarios of share groups: members, offsets, and the states of share partitions."""
