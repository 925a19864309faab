"""Who a client is and what it may do.

Nothing here opens a socket; the broker's network does.
"""
