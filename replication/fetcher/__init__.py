"""Following a leader: fetch, truncate, append (article 004)."""
