"""One file per API: what `ls` shows here is what the broker serves.

A handler reads the request, calls a package below, and shapes the answer. State, decisions and
files belong to those; the registry knows how requests find their way here.
"""
