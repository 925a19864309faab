"""What a log remembers of producers: sequences, epochs, snapshots, verification (KIP-98, -890)."""
