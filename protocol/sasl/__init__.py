"""What SASL mechanisms send to each other: messages, keys and credentials, for either side.

The bytes travel in SaslAuthenticate, or bare after SaslHandshake v0. Who may log in, and what a
connection does next, is not decided here.
"""
