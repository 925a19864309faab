"""Sockets: listeners, transports, connections, TLS handshakes."""
