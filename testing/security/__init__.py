"""Who may log in to a broker of a test, and what they may do there, without a client."""
