"""Coordinators: groups of consumers, and later transactions and share groups.

Plain state machines that take clock, timers and chance from outside and answer by
callback. Nothing here may know of trio, sockets or wire messages: handlers translate.
"""
