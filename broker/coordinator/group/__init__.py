"""The classic group coordinator: members, generations, and the offsets they commit.

`coordinator.py` routes to a group and holds the verbs; one file per verb's rules
(`joining`, `syncing`, `leaving`, `committing`); `states.py` is the table they move along;
`records.py` is the format in which all of it is kept in `__consumer_offsets`.
"""
