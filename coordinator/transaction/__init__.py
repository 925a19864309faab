"""The transaction coordinator: transactions that are seen whole or not at all (KIP-98, KIP-890).

`coordinator.py` holds the verbs, `state_manager.py` the transactional ids that are kept here and
their changes in the log. `states.py` are the tables that ids move along, `transaction.py` makes
one version of an id from the one before. `records.py` is the format of `__transaction_state`.
May touch: protocol, the log of that topic through its seam, clock and timers. It may not know
sockets, files or wire messages; markers are written by who implements `marker_sender.py`.
"""
