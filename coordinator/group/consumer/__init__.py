"""Consumer groups of KIP-848: the broker assigns, and members follow one by one.

`consumer_groups.py` holds the verbs. A heartbeat passes `checks`, then `heartbeats`: the group's
own steps are in `target_assignment`, a member's in `current_assignment`, and all that changes is
one `group_write`, in memory at once and in the log. `sessions` are how silent members go;
`migration` turns classic groups into these and back. `states.py` has the tables. Sockets, files and
trio stay outside.
"""
