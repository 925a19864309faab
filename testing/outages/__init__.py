"""What happens to brokers on purpose: their time, their disks, their links, their leaders.

`broker_outages` and `cluster_outages` are what a test calls; the other modules do it, most of
them in the broker's process, where they are called over the control channel. Each says in the
broker's log what it does. What goes wrong on a client's connection is in `faults`.
"""
