"""Share groups of KIP-932: members that share partitions, and the records in them.

`share_groups.py` holds the verbs on members, `share_partitions.py` those on what groups read: share
partitions are initialized at the share coordinator before members are assigned them. A group is
one immutable image, `share_group.py`, which every change replaces; `records.py` is how
`__consumer_offsets` keeps it, and `states.py` has the table of its states.
"""
