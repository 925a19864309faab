"""Settings that change while a broker runs (KIP-226)."""
