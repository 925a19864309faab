"""Consumer groups of KIP-848: the broker assigns, and members follow one by one.

`consumer_groups.py` holds the verbs. A heartbeat passes `checks`, then `heartbeats`: the group's
own steps are in `assigning`, a member's in `current_assignment`, and all that changes is one
`write`, in memory at once and in the log. `fencing` and `sessions` are how members go;
`migration` turns classic groups into these and back. `states.py` has the tables.

May touch: what the group coordinator may touch. It may not know sockets, files or trio.
"""
