"""Whole clusters in one thread, without sockets or disks, replayed by their seed.

The state machines of brokers, controller, replicas and logs are driven by simulated time, networks
and files, while faults strike and invariants are checked after every step. Nothing here starts a
process or waits.
"""
