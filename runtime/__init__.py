"""The seams between odradek and the world: clock, seeded randomness, waiting, work for threads.

Tiny on purpose. A package that needs the time, randomness or a thread gets it from here, so
that a test or a simulator can put its own in place. Nothing else of odradek may enter.
"""
