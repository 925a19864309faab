"""Listeners that speak TLS: what they show and require, their handshakes, and who the client is.

Imported only where a listener needs it; a plain broker needs none of this. What a broker has in
common with a client (versions, stores of keys) is in `client/security`.
"""
