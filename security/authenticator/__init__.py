"""Who a client is: SASL, from its handshake to a principal, sans-IO (KIP-43, KIP-152, KIP-368).

`SaslAuthenticator` is one connection's; a mechanism's exchange is behind `Exchange`. Nothing here
reads a socket, or decides what a principal may do.
"""
