"""What a broker knows of its cluster: the metadata cache and the finalized features (article 000).

It is told; it asks nobody, and waits for nothing.
"""
