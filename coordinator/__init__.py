"""Coordinators: groups of consumers, and transactions.

Plain state machines that take clock, timers and chance from outside and answer by
callback. What both need lies here: the log they keep their state in (`log.py`,
`replicated_log.py`), which of its partitions keeps a key, and how a failed append is told.
Nothing here may know of trio, sockets or wire messages: handlers translate, and so does
`transaction/marker_channels.py`, which brings markers to other brokers.
"""
