"""Whoever uses the simulated cluster, over the wire, by encoded requests.

They are as simple as what they check allows: a client keeps what it was promised, and the checkers
hold the cluster to it. What a real client library does about it all is not their matter.
"""
