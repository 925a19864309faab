"""Work on data folders without a broker: dump, verify, repair.

It reads files through storage's seam, and never needs a running broker.
"""
