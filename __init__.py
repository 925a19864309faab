"""odradek: a Kafka broker in Python.

The repository root *is* this package; each folder beside this file is a room with a
docstring of its own. Nothing is kept here: no state, no imports.
"""
