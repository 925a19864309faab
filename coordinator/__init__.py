"""Coordinators: groups of consumers, and transactions.

Plain state machines that take clock, timers and random numbers from outside and answer by
callback. What both need lies here: the log they keep their state in (`log.py`,
`replicated_log.py`), time (`runtime.py`), which of its partitions keeps a key and how it is
loaded (`shards.py`), and what a failed append means. Nothing here may know of trio, sockets or
wire messages: handlers translate, and the broker's marker channels bring markers to others.
"""
