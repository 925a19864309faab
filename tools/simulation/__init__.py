"""Whole clusters in one thread, without sockets or disks, replayed by their seed.

Brokers are the product's own, put together as they always are; time, network, files and metadata
store around them are simulated, clients use them over the wire, faults strike, and checkers look
after every event. Nothing here starts a process or waits. `docs/simulation.md` says how to use it.
"""
