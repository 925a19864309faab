"""What every package shares: names of partitions, error codes, values that cross packages.

It imports no other package, and nothing here does anything by itself.
"""
