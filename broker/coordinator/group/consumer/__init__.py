"""Consumer groups of KIP-848: the broker assigns, and members follow one by one.

May touch: what the group coordinator may touch. It may not know sockets, files or trio.
"""
