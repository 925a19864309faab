"""The classic group coordinator: members, generations, and the offsets they commit.

`coordinator.py` holds the verbs and `shards.py` knows which groups are kept here; the rules
of each verb have a file (`joining`, `static_members`, `syncing`, `leaving`, `committing`,
`removing`), `rebalancing.py` and `sessions.py` are what they set off. `states.py` is the
table that groups move along; `records.py` is the format in which all of it is kept in
`__consumer_offsets`. Wire messages and trio stay outside.
"""
