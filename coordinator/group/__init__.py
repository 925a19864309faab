"""The group coordinator: members of groups of both generations, and the offsets they commit.

`coordinator.py` holds the verbs and `shards.py` knows which groups are kept here. Of classic
groups the rules of each verb have a file (`joining`, `static_members`, `syncing`, `leaving`),
`rebalancing.py` and `sessions.py` are what they set off, and `states.py` is the table that they
move along. Groups of KIP-848, which the broker assigns, are in `consumer/`. Both commit offsets
(`committing`, `removing`). `records.py` is the format in which all of it is kept in
`__consumer_offsets`. Wire messages and trio stay outside.
"""
