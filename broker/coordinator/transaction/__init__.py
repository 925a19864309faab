"""The transaction coordinator: transactions that are seen whole or not at all (KIP-98, KIP-890).

May touch: protocol, the log of `__transaction_state` through its seam, clock and timers.
It may not know sockets or files.
"""
