"""What happens to brokers on purpose: their time, their disks, their links, their leaders.

`broker_outages` and `cluster_outages` are what a test calls; `clock`, `connections`,
`coordinators`, `disks` and `replicas` hold the verbs that do it in the broker's process. The
broker logs each of them. What goes wrong on a client's connection is in `faults`.
"""
