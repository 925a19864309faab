"""What a client knows of its cluster, and when it asks again (article 002)."""
