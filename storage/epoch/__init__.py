"""Leader epochs and the offsets at which they begin (KIP-101)."""
