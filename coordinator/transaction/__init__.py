"""The transaction coordinator: transactions that are seen whole or not at all (KIP-98, KIP-890).

`coordinator.py` holds the verbs and `shards.py` knows which transactional ids are kept here.
`states.py` and `end_table.py` are the tables that ids move along, `steps.py` makes one
version of an id from the one before, `keeping.py` stores it; the rules of each verb have a
file (`initializing`, `adding`, `ending`, `completing`, `expiring`). `records.py` is the
format in which all of it is kept in `__transaction_state`. May touch: protocol, the log of
that topic through its seam, clock and timers. It may not know sockets, files or wire
messages; markers are written by who implements `marker_sender.py`.
"""
