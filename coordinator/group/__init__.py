"""The group coordinator: members of groups of both generations, and the offsets they commit.

`coordinator.py` holds the verbs and `shards.py` knows which groups are kept here. Groups whose
leader assigns are in `classic/`, groups of KIP-848, which the broker assigns, in `consumer/`.
Offsets of both are `offset_metadata_manager.py`'s. `records.py` and `consumer/records.py` are the
format in which all of it is kept in `__consumer_offsets`. Wire messages and trio stay outside.
"""
