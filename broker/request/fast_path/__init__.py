"""Memos of a connection's requests: what admission and decoding found, to be found again.

Nothing here decides what is right: a memo is learnt from a request that the slow path has handled,
is used while the admission epoch is unchanged, and must answer as the slow path does.
"""
