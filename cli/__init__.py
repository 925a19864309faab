"""The command line: it parses, calls a package, and shows. No logic lives here.

Heavy libraries are imported by the command that needs them, never at the top.
"""
