"""What a broker knows of its cluster: the metadata cache and the finalized features (article 000).

It takes updates, requests nothing and waits for nothing.
"""
