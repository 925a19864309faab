"""What users' own tests use: a broker in a process of its own.

It may use every room but the command line.
"""
