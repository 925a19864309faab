"""Measuring a broker: loads, rounds, figures. What `odradek bench` shows, and scripts may use.

    from odradek.bench.loads.loads import LOADS
    from odradek.bench.target import Target

    for load in LOADS:
        print(load.name, load.run(Target("127.0.0.1", 9092), 3.0))

A load speaks to any Kafka through plain sockets, with requests that were encoded before the
clock starts, so many in flight and no more, and looks at the error code of each answer. It runs
in a process of its own (`worker`), which shares its interpreter with no broker and no progress
bar.

This package may use protocol, the client's TLS and version ranges, and testing's broker process; it
is not imported by any package but the command line. No broker's code may enter: what is measured is
on the other side of a socket.
"""
